"""Endless stream of generated problems: fully stated ones, and a share of underspecified ones.

Invariants:
- Without a share, problem `index` is `make_problem(seed, index)`.
- Each index is a pure function of the seed, the share and the range of readings; a larger share
  keeps the underspecified problems of a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from engine.config.problems import FEW_READINGS, READING_COUNTS, ProblemsConfig
from engine.problems.generator.compose import Split, make_problem
from engine.problems.generator.underspecified import UNDERSPECIFIED_VERSION, make_underspecified
from engine.problems.problem import Problem

_FAMILY = 0xFA417
"""Separates the draw of an index's family from those of its problem."""


@dataclass(frozen=True, slots=True)
class GeneratedProblems:
    """Stream of problems of one seed, filtered by split."""

    seed: int
    underspecified_share: float = 0.0
    fewest_readings: int = READING_COUNTS[0]
    most_readings: int = FEW_READINGS[-1]

    @classmethod
    def of(cls, config: ProblemsConfig) -> GeneratedProblems:
        """Returns the stream that the settings define."""
        return cls(
            config.seed, config.underspecified_share, config.fewest_readings, config.most_readings
        )

    def at(self, index: int) -> tuple[Problem, Split]:
        """Returns problem number `index`, and its split."""
        readings = self.readings_at(index)
        if readings is None:
            return make_problem(self.seed, index)
        return make_underspecified(self.seed, index, readings)

    def stream(self, split: Split, start: int = 0) -> Iterator[tuple[int, Problem]]:
        """Yields (index, problem) of one split, from stream index `start` on."""
        for index in count(start):
            problem, its_split = self.at(index)
            if its_split is split:
                yield index, problem

    def first(self, split: Split, number: int) -> list[Problem]:
        """Returns the first `number` problems of a split."""
        return [problem for _, problem in islice(self.stream(split), number)]

    def readings_at(self, index: int) -> int | None:
        """Returns the number of readings of an underspecified problem; None for a stated one."""
        if not self.underspecified_share:
            return None
        rng = np.random.default_rng([UNDERSPECIFIED_VERSION, self.seed, index, _FAMILY])
        if rng.random() >= self.underspecified_share:
            return None
        counts = [k for k in READING_COUNTS if self.fewest_readings <= k <= self.most_readings]
        return int(counts[int(rng.integers(len(counts)))])
