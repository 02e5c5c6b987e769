"""Ray actors of a run. Invariant: no process holds both a model and the sandbox."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.config.agents import AgentConfig
from engine.config.schema import RunConfig
from engine.policy.allocator import keep_freed_memory
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.types import Answer, Request, Size, Stream
from engine.problems.problem import Problem
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import SelfCheck
from engine.sandbox.host.verdict_cache import RememberingVerifier
from engine.sandbox.host.verify import Verification
from engine.sandbox.limits import SandboxCaps

GIVES_WAY = 5
"""Niceness of actors that write and verify alongside a learner: an update is one piece of work,
which ends late if it shares its core; what they do not get done meanwhile they do after it."""


class PolicyActor:
    """Actor of one or several policies in their own process; the driver never imports torch.

    With a `place` it is the generator of that number for these policies: it only generates, with
    the weights that it receives.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[AgentConfig]],
        run: RunConfig,
        seeds: Sequence[int],
        place: int | None = None,
    ):
        if run.compute.device != "cuda":
            keep_freed_memory()
        if place is not None and run.training.overlap:
            os.nice(GIVES_WAY)
        from engine.policy.host import PolicyHost

        self.host = PolicyHost(groups, run, seeds, place)

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

    def write(
        self,
        requests: Mapping[int, tuple[str, Request]],
        seconds: float,
        urgent: Collection[int] = (),
    ) -> dict[int, Answer]:
        return self.host.write(requests, seconds, urgent)

    def learn(self, owner: str, rows: Sequence[TrainingRow], progress: float) -> UpdateStats:
        return self.host.learn(owner, rows, progress)

    def give_weights(self, owner: str) -> tuple[int, list[Any]]:
        return self.host.give_weights(owner)

    def take_weights(self, owner: str, given: tuple[int, list[Any]]) -> None:
        self.host.take_weights(owner, *given)

    def end_step(self) -> None:
        self.host.end_step()

    def save_model(self, owner: str, directory: Path) -> None:
        self.host.save_model(owner, directory)

    def save(self, directory: Path) -> None:
        self.host.save(directory)

    def restore(self, directory: Path, as_fork: bool = False) -> list[str]:
        return self.host.restore(directory, as_fork)


class Verifier:
    """Actor that runs programs in the sandbox of one node, `slots` at once; holds no model."""

    def __init__(self, run: RunConfig, slots: int, caps: SandboxCaps):
        if run.training.overlap:
            os.nice(GIVES_WAY)
        self.sandbox = Sandbox(run.sandbox.model_copy(update={"workers": slots}), caps)
        self.check = SelfCheck(self.sandbox)
        self.check.when_due()
        self.verifier = RememberingVerifier(self.sandbox)

    def verify(self, programs: Sequence[tuple[Problem, str]]) -> list[Verification]:
        """Returns verdicts in order; a program that was verified before is not run again.

        Raises:
            SandboxUnavailable: the sandbox fails its self-check.
        """
        self.check.when_due()
        return self.verifier.verify(programs)

    def tier(self) -> str:
        """Returns the tier of the walls around programs."""
        return self.sandbox.tier()

    def close(self) -> None:
        self.sandbox.close()
