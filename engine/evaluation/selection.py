"""Selection of the problems that a team solves sometimes, from which it can learn.

A problem whose samples all fail, or all pass, gives every node the same reward: its advantages are
0. Selected are problems with 0 < passes < samples, apart from those that are also in a test set.

Invariants:
- Every problem of the sources is in the result once, with its outcome.
- A problem that overlaps a test set is never sampled.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.evaluation.measurement import Measurement, verified
from engine.evaluation.metrics import pass_at_k
from engine.problems.identity import content_hash
from engine.problems.overlap import Overlap, overlaps
from engine.problems.problem import Problem

KIND, VERSION = "selection", 1


class Outcome(StrEnum):
    """Why a problem is selected or not."""

    SELECTED = "selected"
    NEVER_SOLVED = "never solved"
    ALWAYS_SOLVED = "always solved"
    UNVERIFIED = "unverified"
    """No sample could be verified, for a technical reason."""
    CONTAMINATED = "contaminated"
    REPEATED = "repeated"
    """Its content is that of an earlier problem."""
    PENDING = "pending"


@dataclass(frozen=True)
class Attempts:
    """Samples of all agents for one problem: those that passed every test, and those verified."""

    passed: int
    tried: int

    @property
    def outcome(self) -> Outcome:
        if not self.tried:
            return Outcome.UNVERIFIED
        if not self.passed:
            return Outcome.NEVER_SOLVED
        return Outcome.ALWAYS_SOLVED if self.passed == self.tried else Outcome.SELECTED


@dataclass(frozen=True)
class Source:
    """Problems of one file, or generated ones."""

    path: str
    problems: Sequence[Problem]


@dataclass
class Selection:
    """The problems of several sources, and what is known of each."""

    sources: Sequence[Source]
    overlaps: dict[str, tuple[str, Overlap]]
    """Overlap of a content hash with a test set, and that set's path."""
    attempts: dict[str, Attempts] = field(default_factory=dict)
    """By content hash."""

    def pending(self) -> list[Problem]:
        """Returns the problems that remain to be sampled, in order."""
        rows = self._rows()
        return [problem for _, problem, outcome in rows if outcome is Outcome.PENDING]

    def selected(self) -> list[Problem]:
        """Returns the selected problems, in order."""
        rows = self._rows()
        return [problem for _, problem, outcome in rows if outcome is Outcome.SELECTED]

    def add(self, measurement: Measurement) -> None:
        """Adds the samples of some problems."""
        for problem, *rows in zip(
            measurement.problems, *measurement.single_agent.values(), strict=True
        ):
            judged = verified([pair for row in rows for pair in row])
            passed = sum(one.passed for one in judged)
            self.attempts[content_hash(problem)] = Attempts(passed, len(judged))

    def report(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the result as plain data; `about` names agents, sources and settings."""
        rows = list(self._rows())
        counts = Counter(outcome for _, _, outcome in rows)
        return {
            "kind": KIND,
            "version": VERSION,
            "about": dict(about),
            "totals": {"problems": len(rows)} | {str(one): counts[one] for one in Outcome},
            "problems": [self._row(*row) for row in rows],
        }

    def _row(self, source: Source, problem: Problem, outcome: Outcome) -> dict[str, Any]:
        content = content_hash(problem)
        row: dict[str, Any] = {
            "id": problem.id, "content": content, "source": source.path, "outcome": str(outcome),
        }  # fmt: skip
        if (one := self.attempts.get(content)) and outcome is not Outcome.REPEATED:
            row |= asdict(one)
            if one.tried:
                row["pass@1"] = pass_at_k(one.tried, one.passed, 1)
        if outcome is Outcome.CONTAMINATED:
            path, overlap = self.overlaps[content]
            row["overlap"] = {
                "path": path, "id": overlap.second, "kind": overlap.kind, "share": overlap.share,
            }  # fmt: skip
        return row

    def _rows(self) -> Iterator[tuple[Source, Problem, Outcome]]:
        seen: set[str] = set()
        for source in self.sources:
            for problem in source.problems:
                content = content_hash(problem)
                yield source, problem, self._outcome(content, seen)
                seen.add(content)

    def _outcome(self, content: str, seen: set[str]) -> Outcome:
        if content in seen:
            return Outcome.REPEATED
        if content in self.overlaps:
            return Outcome.CONTAMINATED
        attempts = self.attempts.get(content)
        return attempts.outcome if attempts else Outcome.PENDING


def overlaps_with(
    sources: Sequence[Source], tests: Sequence[Source], threshold: float
) -> dict[str, tuple[str, Overlap]]:
    """Returns the overlap of each problem that is also in a test set (`engine.problems.overlap`),
    by its content hash, with the path of that set; the first one of several."""
    result: dict[str, tuple[str, Overlap]] = {}
    for source in sources:
        contents = {problem.id: content_hash(problem) for problem in source.problems}
        for test in tests:
            for overlap in overlaps(source.problems, test.problems, threshold):
                result.setdefault(contents[overlap.first], (test.path, overlap))
    return result


def read_attempts(path: Path, about: Mapping[str, Any]) -> dict[str, Attempts]:
    """Returns the attempts of an earlier report by content hash; none if there is no file.

    Raises:
        ValueError: the file is no report, or one of other agents, sources or settings.
        OSError: it cannot be read.
    """
    if not path.exists() or not path.stat().st_size:
        return {}
    try:
        data = json.loads(path.read_text("utf-8"))
        if (data["kind"], data["version"]) != (KIND, VERSION):
            raise ValueError("another kind")
        before = dict(data["about"])
        rows = {
            row["content"]: Attempts(int(row["passed"]), int(row["tried"]))
            for row in data["problems"]
            if "tried" in row
        }
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(f"{path} is no report of `problems select`; name another file") from None
    plain = json.loads(json.dumps(about))
    different = [key for key in plain if before.get(key) != plain[key]]
    if different:
        raise ValueError(
            f"{path}: its {', '.join(different)} differ from those of this command; name another "
            "file, or remove it to begin anew"
        )
    return rows
