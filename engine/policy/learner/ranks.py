"""A learner on several ranks: Ray actors that hold its sharded weights and learn together.

The process that generates with the policy holds whole weights, and no optimizer; the ranks hold the
rest. After each update it takes the new weights from rank 0. Rank 0 opens a store at a port of its
own choice, through which the ranks rendezvous (gloo on CPUs, NCCL on GPUs).

Invariants:
- A checkpoint is the one that a single rank would save, so a run resumes on any number of ranks.
- Every wait has a name and a deadline. Once one rank fails, the others are stopped, whatever they
  wait for, and the error reports the first cause, not a lost connection.
- A rank's random numbers (dropout) depend on seed, version and rank: they need no checkpoint.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import ray
import torch
import torch.distributed as dist
from ray.exceptions import RayActorError, RayError, RayTaskError
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from engine.config.agents import AgentConfig
from engine.config.deadlines import ACTORS_START, CALL, RANKS_GRACE, Deadline
from engine.config.schema import RunConfig
from engine.policy.handles import RankHandle
from engine.policy.learner.objective import DEFAULT, Objective
from engine.policy.learner.rank_group import RankGroup
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.models.weights import Weights
from engine.preload.allocator import keep_freed_memory
from engine.preload.environment import runtime_environment

_SHARE_OF_START, _SHARE_OF_CALL = 14 / 15, 35 / 36
"""Shares of the deadlines of the learner, so that it is the ranks' error that ends it."""


class RankError(RuntimeError):
    """A rank failed, or took too long; names the rank and the first cause."""


def rank_resources(run: RunConfig) -> dict[str, float]:
    """Returns the resources that Ray reserves for one learner rank, as options of its actor."""
    cpu = run.compute.device == "cpu" or run.compute.deterministic
    gpus = 0 if cpu or not ray.cluster_resources().get("GPU", 0) else 1
    return {"num_cpus": run.compute.threads_per_agent, "num_gpus": gpus}


def start_seconds() -> float:
    """Returns the seconds within which the ranks must have met."""
    return ACTORS_START.seconds * _SHARE_OF_START


def learn_seconds() -> float:
    """Returns the seconds that one update, or saving its state, may take."""
    return CALL.seconds * _SHARE_OF_CALL


class LearnerRank:
    """One rank, in a process of its own."""

    def __init__(self, agent: AgentConfig, run: RunConfig, rank: int, pad_id: int, seed: int):
        if run.compute.device != "cuda":
            keep_freed_memory()
        torch.set_num_threads(run.compute.threads_per_agent)
        torch.use_deterministic_algorithms(run.compute.deterministic)
        self.agent, self.run, self.rank, self.pad_id, self.seed = agent, run, rank, pad_id, seed
        self.ranks = agent.learner_ranks
        self.device = _device(run)

    def offer(self) -> tuple[str, int]:
        """Opens the store on rank 0; returns the address and port at which the ranks rendezvous."""
        host = ray.util.get_node_ip_address()
        # A socket of ours: torch's own would listen on every interface, and it admits everyone.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, 0), family=family)
        self.store = dist.TCPStore(
            host, listener.getsockname()[1], self.ranks, is_master=True, wait_for_workers=False,
            timeout=timedelta(seconds=start_seconds()), master_listen_fd=listener.detach(),
        )  # fmt: skip
        return host, self.store.port

    def join(self, host: str, port: int) -> int:
        """Joins the process group, loads and shards the weights; returns the process's id."""
        if self.rank > 0:
            limit = timedelta(seconds=start_seconds())
            self.store = dist.TCPStore(host, port, self.ranks, is_master=False, timeout=limit)
        dist.init_process_group(
            "nccl" if self.device == "cuda" else "gloo",
            store=self.store,
            rank=self.rank,
            world_size=self.ranks,
            timeout=timedelta(seconds=learn_seconds()),
        )
        self._load()
        return os.getpid()

    def update(
        self, rows: Sequence[TrainingRow], progress: float, objective: Objective = DEFAULT
    ) -> tuple[UpdateStats, dict[str, Tensor]]:
        """Learns from this rank's part of the rows; returns the statistics and, on rank 0, the new
        weights by name."""
        torch.manual_seed(hash((self.seed, self.learner.version, self.rank)) % 2**63)
        stats = self.learner.update(rows, progress, objective)
        return stats, {name: w.to(self.weights.dtype) for name, w in self._full().items()}

    def state(self) -> dict[str, Any]:
        """Returns, on rank 0, what `Learner.state` of a single rank would return."""
        optimizers = self.learner.optimizers.state()
        full, masters = self._full(), []
        if full and self.weights.dtype.itemsize < 4:
            masters = [full[name] for name, _ in self.weights.model.named_parameters()]
        state = {**optimizers, "version": self.learner.version, "masters": masters}
        return state | self.learner.heads.state()

    def load_state(self, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Restores whole weights and the `state` of any number of ranks."""
        full = {name: weight.float() for name, weight in weights.items()}
        if state["masters"]:
            names = [name for name, _ in self.weights.model.named_parameters()]
            full |= dict(zip(names, state["masters"], strict=True))
        self.weights.load_full_state(full)
        self.learner.optimizers.load_state(state)
        self.learner.version = state["version"]
        self.learner.heads.load_state(state)

    def _full(self) -> dict[str, Tensor]:
        return self.weights.full_state()

    def _load(self) -> None:
        # Late: a rank that cannot join the others should fail before it loads anything.
        from engine.policy.learner.learner import Learner
        from engine.policy.learner.sharded import ShardedWeights
        from engine.policy.models.load import check_model_directory, load_policy
        from engine.policy.models.shard_loading import empty_model, fill, tensor_files

        directory = check_model_directory(self.agent.model)
        if files := tensor_files(directory):
            model = empty_model(directory, torch.float32)
        else:
            model = load_policy(self.agent.model, "cpu", "float32").model
        mesh = init_device_mesh(self.device, (self.ranks,))
        self.weights = ShardedWeights(
            model,
            mesh,
            getattr(torch, self.run.compute.dtype),
            reference=self.run.loss.reads_reference,
            fill=lambda model: fill(model, files, self.device) if files else None,
        )
        rank_group = RankGroup(self.rank, self.ranks, self.device)
        self.learner = Learner(
            self.weights, self.pad_id, self.agent, self.run.loss, self.run.training, rank_group
        )


class RankedLearner:
    """The interface of a `Learner` over several ranks, which do the learning.

    `weights` are whole, and are those that the policy generates with.

    Raises:
        RankError: a rank did not start.
    """

    def __init__(
        self, weights: Weights, pad_id: int, agent: AgentConfig, run: RunConfig, seed: int
    ):
        self.weights = weights
        self.agent = agent
        self.version = 0
        remote = ray.remote(LearnerRank).options(
            **rank_resources(run),
            max_concurrency=1,
            runtime_env=runtime_environment(run.compute),
        )
        self.actors = [
            cast(RankHandle, remote.remote(agent, run, rank, pad_id, seed))
            for rank in range(agent.learner_ranks)
        ]
        seconds = start_seconds()
        deadline = time.monotonic() + seconds
        offer = [self.actors[0].offer.remote()]
        host, port = self._results(offer, "to start", seconds, ACTORS_START)[0]
        self.processes = self._all(
            "to meet", lambda actor: actor.join.remote(host, port), ACTORS_START,
            deadline - time.monotonic(),
        )  # fmt: skip
        """Process ids of the ranks, on their machines."""

    def update(
        self, rows: Sequence[TrainingRow], progress: float, objective: Objective = DEFAULT
    ) -> UpdateStats:
        """Does what `Learner.update` does, on all ranks.

        Raises:
            RankError: one failed; all of them are stopped.
        """
        given = ray.put(rows)
        results = self._all(
            "to learn", lambda actor: actor.update.remote(given, progress, objective)
        )
        stats, weights = results[0]
        # Each rank saw its own part of the rows.
        stats = replace(stats, tokens=tuple(one for part, _ in results for one in part.tokens))
        self.weights.model.load_state_dict(weights)
        self.version = stats.version
        return stats

    def state(self) -> dict[str, Any]:
        """Returns what a resume needs besides the weights, on any number of ranks."""
        return self._all("to save", lambda actor: actor.state.remote())[0]

    def load_state(self, state: dict[str, Any]) -> None:
        """Restores `state` on all ranks, with the current weights."""
        cpu = {name: w.detach().cpu() for name, w in self.weights.model.state_dict().items()}
        weights, given = ray.put(cpu), ray.put(state)
        self._all("to load", lambda actor: actor.load_state.remote(weights, given))
        self.version = state["version"]

    def _all(
        self,
        what: str,
        call: Callable[[RankHandle], Any],
        deadline: Deadline = CALL,
        seconds: float | None = None,
    ) -> list[Any]:
        seconds = learn_seconds() if seconds is None else seconds
        return self._results([call(actor) for actor in self.actors], what, seconds, deadline)

    def _results(
        self, futures: list[Any], what: str, seconds: float, deadline: Deadline
    ) -> list[Any]:
        """Returns results by rank; stops all ranks at the first failure or after `seconds`, which
        depend on `deadline`."""
        pending, end = list(futures), time.monotonic() + seconds
        while pending:
            left = end - time.monotonic()
            done, pending = ray.wait(pending, timeout=max(0.0, left))
            if not done:
                self.stop()
                raise RankError(
                    f"agents.{self.agent.name}: waited {seconds:.0f} s for {len(pending)} of "
                    f"{len(self.actors)} learner ranks {what}; {deadline.remedy}"
                )
            if _failure(done[0]):
                raise self._first_failure(futures, what)
        return ray.get(futures)

    def _first_failure(self, futures: list[Any], what: str) -> RankError:
        # One failure causes others: a rank that waits for one that has ended fails as well.
        seconds = RANKS_GRACE.seconds
        finished, others = ray.wait(futures, num_returns=len(futures), timeout=seconds)
        self.stop()
        failures = [(n, _failure(f)) for n, f in enumerate(futures) if f in finished]
        rank, error = min(
            ((n, e) for n, e in failures if e is not None), key=lambda pair: _order(pair[1])
        )
        # Then the first cause may be an error that did not come in time.
        late = (
            f"; {len(others)} of the others reported nothing within {seconds:g} s: "
            f"{RANKS_GRACE.remedy}"
        )
        return RankError(
            f"agents.{self.agent.name}: rank {rank} of {len(self.actors)} failed {what}: "
            f"{_cause(error)}{late if others and _order(error) else ''}"
        )

    def stop(self) -> None:
        """Ends every rank, whatever it waits for."""
        for actor in self.actors:
            ray.kill(actor)


def _device(run: RunConfig) -> str:
    requested = run.compute.device
    if run.compute.deterministic or requested == "cpu":
        return "cpu"
    return "cuda" if requested == "cuda" or torch.cuda.is_available() else "cpu"


def _failure(future: Any) -> RayError | None:
    try:
        ray.get(future, timeout=0)
    except RayError as error:
        return error
    return None


def _order(error: RayError) -> int:
    """Sort key of failures: root errors, then processes that died, then lost connections."""
    if isinstance(error, RayActorError):
        return 1
    text = str(error)
    lost = isinstance(getattr(error, "cause", None), dist.DistError) or any(
        word in text for word in ("gloo", "Connection closed", "Connection reset", "NCCL")
    )
    return 2 if lost else 0


def _cause(error: RayError) -> str:
    cause = error.cause if isinstance(error, RayTaskError) else error
    first = next((line for line in str(cause).splitlines() if line.strip()), "")
    return f"{type(cause).__name__}: {first.strip()}"
