"""Prints what the last run of the suite cost, by room and file: `python -m tests.times`.

tests/budget.toml holds the most that each room may cost in `make test`; tests marked `large`, which
run in `make test-all` alone, do not count against it.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.helpers.measures import Result, read_results
from tests.helpers.waiting import IDLE, VARIABLE

BUDGET = Path(__file__).parent / "budget.toml"
RESULTS = Path("build/times.jsonl")
COST = Path("build/times.json")
FILES_FROM = 5.0
"""Files that take fewer seconds are not listed."""


@dataclass(frozen=True)
class Cost:
    """What a whole run took, in seconds."""

    seconds: float
    cpu_seconds: float
    """Of its processes, without Postgres and Ray."""
    machine_cpu_seconds: float
    """Of the machine meanwhile: with Postgres and Ray, and with what else ran on it."""

    def __str__(self) -> str:
        return (
            f"{self.seconds / 60:.1f} minutes, {self.cpu_seconds / 60:.1f} CPU minutes "
            f"({self.machine_cpu_seconds / 60:.1f} of the machine)"
        )


@dataclass
class Sum:
    """Of the tests of a room or of a file."""

    tests: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, result: Result) -> None:
        self.tests += 1
        self.seconds += result.seconds
        self.cpu_seconds += result.cpu_seconds


def file_of(result: Result) -> str:
    """Returns the file of a test, as in tests/security/test_walk.py."""
    return result.test.split("::", 1)[0]


def room_of(result: Result) -> str:
    """Returns the room of a test, as in engine/search, webapp/http or security."""
    parts = file_of(result).split("/")[1:-1]
    return "/".join(parts[: 2 if parts[:1] in (["engine"], ["webapp"]) else 1]) or "tests"


def sums(results: Iterable[Result], key: Callable[[Result], str]) -> dict[str, Sum]:
    """Returns the sums by room or by file, the longest first."""
    found: dict[str, Sum] = defaultdict(Sum)
    for result in results:
        found[key(result)].add(result)
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def read_budget() -> dict[str, dict[str, float]]:
    """Returns `seconds` and `cpu_seconds` of every room."""
    return tomllib.loads(BUDGET.read_text())


def over_budget(results: Iterable[Result]) -> Iterator[str]:
    """Yields a line per room of `make test` that cost more than its budget. Seconds are allowed to
    grow with the patience of the run, as the waits do; CPU seconds are not."""
    budget = read_budget()
    slower = max(1.0, float(os.environ.get(VARIABLE) or IDLE) / IDLE)
    for room, found in sums((one for one in results if not one.large), room_of).items():
        most = budget.get(room)
        if most is None:
            yield f"No budget for {room} in {BUDGET.name}: it took {found.seconds:.0f} s."
        elif found.seconds > most["seconds"] * slower or found.cpu_seconds > most["cpu_seconds"]:
            yield (
                f"Above its budget: {room}, {found.seconds:.0f} of {most['seconds'] * slower:.0f} "
                f"s and {found.cpu_seconds:.0f} of {most['cpu_seconds']} CPU s."
            )


def write_cost(cost: Cost) -> None:
    """Keeps what the last run cost."""
    COST.write_text(json.dumps(asdict(cost)) + "\n")


def table(title: str, rows: dict[str, Sum], budget: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yields the lines of a table of sums."""
    yield f"\n{title:<52}{'tests':>7}{'seconds':>9}{'budget':>8}{'CPU s':>8}{'budget':>8}"
    for name, found in rows.items():
        most = budget.get(name, {})
        yield (
            f"{name:<52}{found.tests:>7}{found.seconds:>9.1f}{most.get('seconds', ''):>8}"
            f"{found.cpu_seconds:>8.1f}{most.get('cpu_seconds', ''):>8}"
        )


def main() -> None:
    """Prints rooms, files and the whole of the last run."""
    results = read_results(RESULTS)
    if not results:
        raise SystemExit(f"{RESULTS}: no run has been measured; run: make test")
    print(*table("room", sums(results, room_of), read_budget()), sep="\n")
    files = sums(results, file_of)
    long = {name: found for name, found in files.items() if found.seconds >= FILES_FROM}
    print(*table(f"file (from {FILES_FROM:.0f} s)", long, {}), sep="\n")
    cost = Cost(**json.loads(COST.read_text())) if COST.exists() else "the run did not end"
    print(f"\n{len(results)} tests, of which {sum(one.large for one in results)} large; {cost}")
    print(*over_budget(results), sep="\n")


if __name__ == "__main__":
    main()
