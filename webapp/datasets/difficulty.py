"""Difficulty of a version's problems for the runs that were trained on it.

The telemetry app, which has the runs' logs, registers how attempts are counted (`count_by`).
Invariant: a problem is identified by its id in the version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.problems.difficulty import difficulties
from webapp.accounts.models import User
from webapp.datasets.models import DatasetVersion


@dataclass(frozen=True, slots=True)
class Attempts:
    """Verified attempts at the problems of a version."""

    runs: int
    """Number of runs that were counted."""
    counts: dict[str, tuple[int, int]]
    """Attempts, and those of them that passed, by id of the problem."""


AttemptCounter = Callable[[DatasetVersion, User], Attempts]
_registered: dict[str, AttemptCounter] = {}


def count_by(counter: AttemptCounter) -> None:
    """Registers the function that counts the attempts of the runs on a version that a user sees."""
    _registered["attempts"] = counter


@dataclass(frozen=True, slots=True)
class RatedProblem:
    """Difficulty of one problem that was tried."""

    number: int
    problem: str
    tried: int
    passed: int
    difficulty: float


@dataclass(frozen=True, slots=True)
class VersionDifficulties:
    """Difficulties of the tried problems of a version, hardest first."""

    runs: int
    problems: list[RatedProblem]


def problem_difficulties(version: DatasetVersion, user: User) -> VersionDifficulties:
    """Returns the difficulties from the runs on this version that `user` may see."""
    attempts = _registered["attempts"](version, user)
    counts = attempts.counts
    problems = version.problems.filter(problem__in=list(counts)).order_by("number")
    rows = list(problems.values_list("number", "problem"))
    tried = [counts[problem][0] for _, problem in rows]
    passed = [counts[problem][1] for _, problem in rows]
    counted = zip(rows, tried, passed, difficulties(passed, tried) if rows else [], strict=True)
    rated = [
        RatedProblem(number, problem, n, c, round(d, 4)) for (number, problem), n, c, d in counted
    ]
    return VersionDifficulties(
        attempts.runs, sorted(rated, key=lambda x: (-x.difficulty, x.number))
    )
