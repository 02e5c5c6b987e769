"""The record of all measurements, `docs/benchmarks.json`, from which the page is written.

Invariant: a measurement is only ever appended; the newest of a name counts, the earlier ones stay.
The digest covers all of them, so that a number changed by hand is detected, and the page depends
on the record alone, so that it cannot contain anything else.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import Goal


class NotWritten(Exception):
    """The page or the record is not as `python -m benchmarks all` wrote it; contains the reason."""


@dataclass(frozen=True)
class Measurement:
    """The result of one measurement, or the reason for its absence, and its conditions."""

    name: str
    measured_at: str
    """UTC, ISO 8601, at its start."""
    seconds: float
    machine: str
    commit: str
    load_before: dict[str, float]
    load_after: dict[str, float]
    options: str = ""
    """Options of its command line other than the defaults."""
    about: str = ""
    """What is compared and how: the module's docstring at that time."""
    goals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Goals by ratio at the time of the measurement."""
    ratios: dict[str, float] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: str = ""
    failed: str = ""

    def goal(self, ratio: str) -> Goal | None:
        return Goal(**self.goals[ratio]) if ratio in self.goals else None

    def judged(self, ratio: str) -> str:
        """Returns `met`, `missed` or `not measured`; empty for a ratio without a goal."""
        goal = self.goal(ratio)
        if goal is None:
            return ""
        if ratio not in self.ratios:
            return "not measured"
        return "met" if goal.met(self.ratios[ratio]) else "missed"

    def rows(self) -> list[str]:
        """Returns the names of its table rows: all ratios, and goals whose ratio is missing."""
        return [*self.ratios, *(name for name in self.goals if name not in self.ratios)]

    def missed(self) -> list[str]:
        """Returns one sentence for each missed goal."""
        return [
            f"{self.name}: {ratio} is {self.ratios[ratio]}, the goal is {self.goal(ratio)}"
            for ratio in self.rows()
            if self.judged(ratio) == "missed"
        ]


@dataclass
class Record:
    """All measurements, oldest first."""

    measurements: list[Measurement] = field(default_factory=list)

    def add(self, measurement: Measurement) -> None:
        self.measurements.append(measurement)

    def of(self, name: str) -> list[Measurement]:
        """Returns the measurements of a name, newest first."""
        return [one for one in reversed(self.measurements) if one.name == name]

    def digest(self) -> str:
        """Returns the SHA-256 over all rows in a canonical form."""
        rows = [asdict(one) for one in self.measurements]
        text = json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self, file: Path) -> None:
        content = {
            "digest": self.digest(),
            "measurements": [asdict(one) for one in self.measurements],
        }
        file.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", "utf-8")


def load_record(file: Path) -> Record:
    """Returns the record of a file; an empty one if there is no file.

    Raises:
        NotWritten: its rows do not match its digest.
    """
    if not file.is_file():
        return Record()
    content = json.loads(file.read_text("utf-8"))
    record = Record([Measurement(**one) for one in content["measurements"]])
    if content["digest"] != record.digest():
        raise NotWritten(
            f"{file}: its digest is {content['digest'][:12]}..., that of its rows is "
            f"{record.digest()[:12]}...; restore the file from the history, and measure again by "
            "`python -m benchmarks all --only NAME`"
        )
    return record


def check_written(page: Path) -> Record:
    """Returns the record of a page, after a check that the page was written from it.

    Raises:
        NotWritten: the page or the record was changed by other means.
    """
    from benchmarks.table import document

    record = load_record(page.with_suffix(".json"))
    if page.read_text("utf-8") != document(record):
        raise NotWritten(
            f"{page} is not the page of {page.with_suffix('.json').name}; "
            "`python -m benchmarks all --render` writes it again from the rows"
        )
    return record
