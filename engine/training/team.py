"""The Ray actors of a run: one per agent with its weights, one that verifies.

Invariants:
- No process holds both a model and the sandbox.
- An actor's calls run in the order in which they were submitted.
- Every wait has a name and a deadline, and is reported while it lasts.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import GetTimeoutError

from engine.config import AgentConfig, RunConfig
from engine.policy.allocator import keep_freed_memory
from engine.policy.exchange import Answer, Request, Stream
from engine.policy.rows import TrainingRow, UpdateStats
from engine.problems.problem import Problem
from engine.sandbox.checking import SelfCheck
from engine.sandbox.memory import RememberingVerifier
from engine.sandbox.sandbox import Sandbox
from engine.sandbox.verify import Verification

START_DEADLINE = 300.0
CALL_DEADLINE = 3600.0
REPORT_AFTER = 2.0

Waiting = Callable[[str, float], None]


class AgentActor:
    """One agent in a process of its own; the driver never imports torch."""

    def __init__(self, config: AgentConfig, run: RunConfig, seed: int):
        if run.compute.device != "cuda":
            keep_freed_memory()
        if run.compute.deterministic:
            # Read when torch loads its libraries: sums in one order, on as many threads as told.
            os.environ |= {"MKL_CBWR": "AUTO", "MKL_DYNAMIC": "FALSE", "OMP_DYNAMIC": "FALSE"}
        from engine.policy.agent import Agent

        self.agent = Agent(config, run, seed)

    def parameters(self) -> int:
        return self.agent.parameters()

    def answer(
        self,
        requests: Sequence[Request],
        temperature: float | None = None,
        starting_weights: bool = False,
        stream: Stream | None = None,
    ) -> list[Answer]:
        return self.agent.answer(requests, temperature, starting_weights, stream)

    def learn(self, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        return self.agent.learn(rows, progress)

    def end_step(self) -> None:
        self.agent.end_step()

    def save_model(self, directory: Path) -> None:
        self.agent.save_model(directory)

    def save(self, directory: Path) -> None:
        self.agent.save(directory)

    def restore(self, directory: Path) -> list[str]:
        return self.agent.restore(directory)


class Verifier:
    """Runs programs in the sandbox; holds no model."""

    def __init__(self, run: RunConfig):
        self.sandbox = Sandbox(run.sandbox)
        self.check = SelfCheck(self.sandbox)
        self.check.when_due()
        self.verifier = RememberingVerifier(self.sandbox)

    def verify(self, programs: Sequence[tuple[Problem, str]]) -> list[Verification]:
        """Verdicts in order; a program that was verified before is not run again.

        Raises:
            SandboxUnavailable: the sandbox no longer tells right from wrong.
        """
        self.check.when_due()
        return self.verifier.verify(programs)

    def tier(self) -> str:
        """Name of the walls that stand around programs."""
        return self.sandbox.tier()

    def close(self) -> None:
        self.sandbox.close()


class TeamError(RuntimeError):
    """The team could not be started, or one of its actors failed."""


class Team:
    """Handles of all actors of one run."""

    def __init__(self, config: RunConfig, waiting: Waiting):
        self.config = config
        self.waiting = waiting
        self._connect()
        self.agents: dict[str, Any] = {}
        cores = config.compute.threads_per_agent
        for position, agent in enumerate(config.agents):
            options = {"num_cpus": cores, "num_gpus": self._gpus(), "max_concurrency": 1}
            actor = ray.remote(AgentActor).options(**options)
            self.agents[agent.name] = actor.remote(
                _resolved(agent), config, config.seed + 7919 * position
            )
        self.verifier = ray.remote(Verifier).options(num_cpus=0).remote(config)

    def ready(self) -> dict[str, int]:
        """Wait until every actor has started; parameters by agent.

        Raises:
            TeamError: an actor failed to start, with its first cause.
        """
        parameters = self.get(
            [a.parameters.remote() for a in self.agents.values()], "agents to load", START_DEADLINE
        )
        self.get(self.verifier.verify.remote([]), "sandbox to pass its self-check", START_DEADLINE)
        return dict(zip(self.agents, parameters, strict=True))

    def tier(self) -> str:
        """Name of the walls around programs; `none` where the settings let a run go on."""
        return self.get(self.verifier.tier.remote(), "sandbox to name its walls")

    def get(self, futures: Any, name: str, deadline: float = CALL_DEADLINE) -> Any:
        """Result of one or several calls; a long wait is reported under its name.

        Raises:
            TeamError: the deadline passed, or the actor failed (with its first cause).
        """
        try:
            try:
                return ray.get(futures, timeout=min(REPORT_AFTER, deadline))
            except GetTimeoutError:
                self.waiting(name, deadline)
            try:
                return ray.get(futures, timeout=max(0.0, deadline - REPORT_AFTER))
            finally:
                self.waiting("", 0.0)
        except GetTimeoutError:
            raise TeamError(
                f"waited {deadline:.0f} s for {name}; look at the load of the machine"
            ) from None
        except ray.exceptions.RayTaskError as error:
            raise TeamError(f"{name}: {_cause(error)}") from error
        except ray.exceptions.RayActorError as error:
            raise TeamError(f"{name}: {_cause(error)}") from error

    def save(self, directory: Path) -> None:
        """Every agent's state under `directory/NAME`."""
        self.get([a.save.remote(directory / n) for n, a in self.agents.items()], "agents to save")

    def restore(self, directory: Path) -> list[str]:
        """Every agent goes on from `directory/NAME`; how their platforms differ from before."""
        futures = [a.restore.remote(directory / n) for n, a in self.agents.items()]
        return [line for lines in self.get(futures, "agents to restore") for line in lines]

    def end_step(self) -> None:
        """Whatever is drawn after this is drawn again if the next step is cut off."""
        self.get([a.end_step.remote() for a in self.agents.values()], "agents to end the step")

    def close(self) -> None:
        """Stop the actors; a local Ray stops with them."""
        ray.shutdown()

    def _connect(self) -> None:
        address = self.config.compute.ray_address or os.environ.get("RAY_ADDRESS")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray would run its workers at nice 15, where any other program starves them.
        os.environ.setdefault("RAY_worker_niceness", "0")
        self.waiting("starting Ray" if not address else f"joining Ray at {address}", START_DEADLINE)
        needed = self.config.compute.threads_per_agent * len(self.config.agents)
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address:
            options["address"] = address
        else:
            # On one machine more actors than cores may share them; Ray would wait for ever.
            options |= {"include_dashboard": False, "num_cpus": max(needed, os.cpu_count() or 1)}
        _start_ray(options)
        self.waiting("", 0.0)
        total = ray.cluster_resources().get("CPU", 0)
        if total < needed:
            raise TeamError(
                f"the cluster has {total:.0f} cores, the agents want {needed}; "
                f"lower compute.threads_per_agent = {self.config.compute.threads_per_agent}"
            )

    def _gpus(self) -> float:
        available = ray.cluster_resources().get("GPU", 0)
        if self.config.compute.device == "cpu" or not available:
            return 0
        return min(1.0, available / len(self.config.agents))


def _start_ray(options: dict[str, Any]) -> None:
    """Connect or start; Ray gives its own processes 30 s, too little on a busy machine."""
    deadline = time.monotonic() + START_DEADLINE
    while True:
        try:
            ray.init(**options)
            return
        except Exception as error:
            ray.shutdown()
            _kill_children()  # a start that failed half-way leaves its processes behind
            if time.monotonic() > deadline or "address" in options:
                where = options.get("address", "this machine")
                raise TeamError(f"Ray at {where} did not start: {error}") from error


def _kill_children() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _resolved(agent: AgentConfig) -> AgentConfig:
    """Relative model paths are those of the driver, not of the actor."""
    path = Path(agent.model)
    return agent if ":" in agent.model else agent.model_copy(update={"model": str(path.absolute())})


def _cause(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[-1].strip()}" if lines else type(cause).__name__
