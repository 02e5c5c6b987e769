"""Ray actor of policies. Invariant: no process holds both a model and the sandbox, whose actor is
`engine.rollout.verifier.Verifier`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.config.agents import AgentConfig
from engine.config.schema import RunConfig
from engine.policy.learner.rows import TrainingRow, UpdateStats
from engine.policy.types import Answer, Request, Size, Stream
from engine.preload.allocator import keep_freed_memory
from engine.rollout.verifier import GIVES_WAY


class PolicyActor:
    """Actor of one or several policies in their own process; the driver never imports torch.

    With a `number` it is the generator of that number for these policies: it only generates, with
    the weights that it receives.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[AgentConfig]],
        run: RunConfig,
        seeds: Sequence[int],
        number: int | None = None,
        run_dir: Path | None = None,
        clock: str | None = None,
    ):
        if run.compute.device != "cuda":
            keep_freed_memory()
        if number is not None and run.training.overlap:
            os.nice(GIVES_WAY)
        from engine.policy.host import PolicyHost

        self.host = PolicyHost(groups, run, seeds, number, run_dir, clock)

    def sizes(self) -> dict[str, Size]:
        return self.host.sizes()

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        return self.host.too_long(statements)

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
