"""The socket of samplers: which training problem the next tree gets.

Draws have positions: 0, 1, 2, ... over the whole run. A sampler names the problem of each position,
once and in order, and may choose it by what it has seen of earlier steps.

Invariant: a problem depends on the settings, on the position, and on the trees observed before it
was drawn. Positions that were drawn and whose trees did not begin keep their problems, so that an
interrupted step is repeated as it was (`Draws`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from engine.config.training import TrainingConfig
from engine.memory.protocol import Memory, OnFork, SeenTree


class Sampler(Memory, Protocol):
    """Source of training problems; a memory, since what it drew by outlives a step."""

    def next(self, position: int) -> int:
        """Returns the number, in the training split, of the problem of the draw at `position`. A
        run requests each position once, in order; the first is 0, or where a fork's parent was."""
        ...


Make = Callable[[int, int, TrainingConfig], Sampler]
"""(number of problems in the training split, seed of the run, settings) -> the sampler of a run
that has drawn nothing yet."""


def sampler_of(module: Any) -> Make:
    """Returns the sampler that a module holds, its function `sampler`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(make := getattr(module, "sampler", None)):
        raise ValueError("has no function sampler(problems, seed, training)")
    return make


class Draws:
    """The draws of one run: a sampler, and those of its draws whose trees have not begun."""

    def __init__(self, sampler: Sampler):
        self.sampler = sampler
        self._first = 0
        """Position of the first kept draw."""
        self._drawn: list[int] = []

    @property
    def on_fork(self) -> OnFork:
        return self.sampler.on_fork

    def take(self, first: int, count: int) -> list[int]:
        """Returns the problems of `count` draws from position `first` on. Draws before `first` are
        done with.

        Raises:
            ValueError: `first` is before the `first` of an earlier call.
        """
        if not self._drawn:
            self._first = first
        if first < self._first:
            raise ValueError(f"first = {first}: draws before {self._first} are done with")
        del self._drawn[: first - self._first]
        self._first = first
        while len(self._drawn) < count:
            self._drawn.append(self.sampler.next(first + len(self._drawn)))
        return self._drawn[:count]

    def observe(self, step: int, trees: Sequence[SeenTree]) -> None:
        """Shows the sampler the trees of a step."""
        self.sampler.observe(step, trees)

    def state(self) -> dict[str, Any]:
        """Returns the kept draws and the sampler's state."""
        return {"first": self._first, "drawn": self._drawn[:], "sampler": self.sampler.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces the kept draws and the sampler's state."""
        self._first, self._drawn = state["first"], list(state["drawn"])
        self.sampler.restore(state["sampler"])
