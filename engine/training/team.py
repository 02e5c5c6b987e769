"""The Ray actors of a run: one per set of weights, one that verifies.

Agents that share weights share an actor, and so do adapters over one base.

Invariants:
- No process holds both a model and the sandbox.
- An actor's calls run in the order in which they were submitted.
- Every wait has a name and a deadline, and is reported while it lasts.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import GetTimeoutError

from engine.config import AgentConfig, RunConfig
from engine.generation import generator_gpus, start_deadline
from engine.policy.allocator import keep_freed_memory, sums_in_one_order
from engine.policy.exchange import Answer, Request, Size, Stream
from engine.policy.rows import TrainingRow, UpdateStats
from engine.problems.problem import Problem
from engine.sandbox.checking import SelfCheck
from engine.sandbox.memory import RememberingVerifier
from engine.sandbox.sandbox import Sandbox
from engine.sandbox.verify import Verification
from engine.sharing import actor_groups, rank_processes, weight_groups

START_DEADLINE = 300.0
CALL_DEADLINE = 3600.0
REPORT_AFTER = 2.0

Waiting = Callable[[str, float], None]


class PolicyActor:
    """One or several policies in a process of their own; the driver never imports torch."""

    def __init__(
        self, groups: Sequence[Sequence[AgentConfig]], run: RunConfig, seeds: Sequence[int]
    ):
        if run.compute.device != "cuda":
            keep_freed_memory()
        if run.compute.deterministic:
            sums_in_one_order()
        from engine.policy.host import PolicyHost

        self.host = PolicyHost(groups, run, seeds)

    def sizes(self) -> dict[str, Size]:
        return self.host.sizes()

    def answer(
        self,
        requests: Mapping[str, Sequence[Request]],
        temperature: float | None = None,
        starting_weights: bool = False,
        stream: Stream | None = None,
    ) -> dict[str, list[Answer]]:
        return self.host.answer(requests, temperature, starting_weights, stream)

    def learn(self, owner: str, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        return self.host.learn(owner, rows, progress)

    def end_step(self) -> None:
        self.host.end_step()

    def save_model(self, owner: str, directory: Path) -> None:
        self.host.save_model(owner, directory)

    def save(self, directory: Path) -> None:
        self.host.save(directory)

    def restore(self, directory: Path) -> list[str]:
        return self.host.restore(directory)


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
        self.agents = self._agents()
        """The actor of each agent."""
        self.verifier = ray.remote(Verifier).options(num_cpus=0).remote(config)

    @property
    def actors(self) -> list[Any]:
        """Every actor that holds weights, once."""
        return list(dict.fromkeys(self.agents.values()))

    def ready(self) -> dict[str, Size]:
        """Wait until every actor has started; weights by agent.

        Raises:
            TeamError: an actor failed to start, with its first cause.
        """
        deadline = start_deadline(self.config.agents)
        found = self.get([a.sizes.remote() for a in self.actors], "agents to load", deadline)
        self.get(self.verifier.verify.remote([]), "sandbox to pass its self-check", START_DEADLINE)
        return {name: ChainMap(*found)[name] for name in self.agents}

    def answer(
        self,
        requests: Mapping[str, Sequence[Request]],
        temperature: float | None = None,
        starting_weights: bool = False,
        stream: Stream | None = None,
    ) -> list[Any]:
        """One call to every actor of the agents that are asked; each gives answers by agent."""
        return [
            actor.answer.remote(
                {name: asked for name, asked in requests.items() if self.agents[name] is actor},
                temperature,
                starting_weights,
                stream,
            )
            for actor in dict.fromkeys(self.agents[name] for name in requests)
        ]

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
        """The state of every set of weights, under `directory/OWNER`."""
        self.get([a.save.remote(directory) for a in self.actors], "agents to save")

    def restore(self, directory: Path) -> list[str]:
        """Every policy goes on from `directory/OWNER`; how their platforms differ from before."""
        futures = [a.restore.remote(directory) for a in self.actors]
        return [line for lines in self.get(futures, "agents to restore") for line in lines]

    def end_step(self) -> None:
        """Whatever is drawn after this is drawn again if the next step is cut off."""
        self.get([a.end_step.remote() for a in self.actors], "agents to end the step")

    def close(self) -> None:
        """Stop the actors; a local Ray stops with them."""
        ray.shutdown()

    def _agents(self) -> dict[str, Any]:
        groups = weight_groups([_resolved(agent) for agent in self.config.agents])
        positions = {agent.name: place for place, agent in enumerate(self.config.agents)}
        options = {
            "num_cpus": self.config.compute.threads_per_agent,
            "max_concurrency": 1,
        }
        actors: dict[str, Any] = {}
        for owners in actor_groups(self.config.agents):
            mine = [groups[owner] for owner in owners]
            seeds = [self.config.seed + 7919 * positions[owner] for owner in owners]
            place = ray.remote(PolicyActor).options(**options, num_gpus=self._gpus(mine))
            actor = place.remote(mine, self.config, seeds)
            actors |= {agent.name: actor for group in mine for agent in group}
        return {agent.name: actors[agent.name] for agent in self.config.agents}

    def _connect(self) -> None:
        address = self.config.compute.ray_address or os.environ.get("RAY_ADDRESS")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Ray would run its workers at nice 15, where any other program starves them.
        os.environ.setdefault("RAY_worker_niceness", "0")
        self.waiting("starting Ray" if not address else f"joining Ray at {address}", START_DEADLINE)
        processes = len(actor_groups(self.config.agents)) + rank_processes(self.config.agents)
        needed = self.config.compute.threads_per_agent * processes
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

    def _gpus(self, policies: Sequence[Sequence[AgentConfig]]) -> float:
        """Of one actor: a share of one, or one and those that its generators have to themselves."""
        available = ray.cluster_resources().get("GPU", 0)
        if self.config.compute.device == "cpu" or not available:
            return 0
        if own := generator_gpus([agents[0] for agents in policies]):
            if available < 1 + own:
                raise TeamError(
                    f"agents.{policies[0][0].name}.generator.tensor_parallel_size: with the "
                    f"learner's that is {1 + own} GPUs, and there are {available:.0f}; lower it"
                )
            return 1 + own
        return min(1.0, available / len(actor_groups(self.config.agents)))


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
    """Relative paths are those of the driver, not of the actor."""
    paths: dict[str, str] = {}
    if ":" not in agent.model:
        paths["model"] = str(Path(agent.model).absolute())
    if agent.chat_template is not None:
        paths["chat_template"] = str(Path(agent.chat_template).expanduser().absolute())
    return agent.model_copy(update=paths)


def _cause(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    lines = [line for line in str(cause).strip().splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[-1].strip()}" if lines else type(cause).__name__
