"""Where a run's problems come from: the built-in generator or a file.

Invariant: the three splits are disjoint; of generated problems by program structure, of a file by
problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np

from engine.config import ConfigError, ProblemsConfig
from engine.problems.errors import DatasetError
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.jsonl import load_problems
from engine.problems.problem import Problem

GENERATED = "generated"


@dataclass(frozen=True)
class ProblemSet:
    """The splits of one run; training problems are gone through in order, again and again."""

    train: Sequence[Problem]
    validation: list[Problem]
    test: list[Problem]

    def training_batch(self, position: int, size: int) -> list[Problem]:
        """`size` problems from training position `position` on."""
        return [self.train[i % len(self.train)] for i in islice(count(position), size)]


class StreamedProblems(Sequence[Problem]):
    """The first `size` problems of a split, made when they are first asked for."""

    def __init__(self, source: GeneratedProblems, split: Split, size: int):
        self._stream = source.stream(split)
        self._made: list[Problem] = []
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> Problem:
        if not 0 <= position < self._size:
            raise IndexError(position)
        while len(self._made) <= position:
            self._made.append(next(self._stream)[1])
        return self._made[position]


def load_problem_set(config: ProblemsConfig) -> ProblemSet:
    """All problems of a run.

    Raises:
        ConfigError: a file with too few problems for the splits.
        DatasetError: a file with faults, each with line, field and remedy.
    """
    if config.dataset == GENERATED:
        source = GeneratedProblems(config.seed)
        return ProblemSet(
            StreamedProblems(source, Split.TRAIN, config.train),
            source.first(Split.VALIDATION, config.validation),
            source.first(Split.TEST, config.test),
        )
    return _split(load_problems(Path(config.dataset)), config)


def check_problem_set(config: ProblemsConfig) -> None:
    """Refuse problems that a run could not be trained on.

    Raises:
        ConfigError: every fault of the file, as faults of `problems.dataset`.
    """
    if config.dataset == GENERATED:
        return
    try:
        load_problem_set(config)
    except DatasetError as error:
        faults = [
            {"path": "problems.dataset", "value": config.dataset, "reason": str(fault)}
            for fault in error.faults
        ]
        raise ConfigError(faults) from None


def _split(problems: list[Problem], config: ProblemsConfig) -> ProblemSet:
    held_back = config.validation + config.test
    if len(problems) <= held_back:
        reason = (
            f"{config.dataset} holds {len(problems)} problems, but validation and test alone take "
            f"{held_back}; lower problems.validation or problems.test"
        )
        raise ConfigError([{"path": "problems", "value": len(problems), "reason": reason}])
    order = np.random.default_rng(config.seed).permutation(len(problems))
    shuffled = [problems[i] for i in order]
    return ProblemSet(
        train=shuffled[held_back : held_back + config.train],
        validation=shuffled[: config.validation],
        test=shuffled[config.validation : held_back],
    )
