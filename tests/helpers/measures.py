"""What each test costs, in seconds and CPU seconds, and what failed: a plugin of the suite.

`--results FILE` gets one JSON line per test as it ends, so that a run which is cut off keeps them;
`tests.run` reads them, and `tests.times` prints them by room and file.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

OPTION = "--results"


@dataclass
class Result:
    """One test of one run."""

    test: str
    """Its node id."""
    seconds: float = 0.0
    """Wall time of its set-up, call and tear-down."""
    cpu_seconds: float = 0.0
    """CPU time of its process and of those that ended as its children meanwhile. Not in it: Ray
    and Postgres, which outlive the test."""
    outcome: str = "passed"
    """passed, skipped or failed; failed too if its set-up or its tear-down raised an error."""
    traceback: str = ""
    """Of its first failure."""
    large: bool = False
    """Whether it runs in `make test-all` alone."""
    worker: str = ""


@dataclass(eq=False)  # pytest keeps its plugins in sets
class Results:
    """Collects the reports of all processes of a run; in each, adds the CPU time to them."""

    file: Path | None
    found: dict[str, Result] = field(default_factory=dict)
    _cpu_seconds: float = 0.0

    def pytest_sessionstart(self) -> None:
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text("")

    def pytest_runtest_logstart(self) -> None:
        self._cpu_seconds = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        result = yield
        if nextitem is None:  # the services of the whole run have ended with it
            self._cpu_seconds = cpu_seconds()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        before, self._cpu_seconds = self._cpu_seconds, cpu_seconds()
        report.cpu_seconds = self._cpu_seconds - before
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = self.found.setdefault(report.nodeid, Result(report.nodeid))
        result.seconds += getattr(report, "duration", 0.0)
        # A process that crashed has not measured its last test.
        result.cpu_seconds += getattr(report, "cpu_seconds", 0.0)
        result.large = "large" in report.keywords
        result.worker = getattr(report, "worker_id", "")
        if report.failed:
            result.outcome = "failed"
            result.traceback = result.traceback or report.longreprtext
        elif report.skipped and result.outcome == "passed":
            result.outcome = "skipped"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if nodeid in self.found:
            self._write(self.found.pop(nodeid))

    def pytest_sessionfinish(self) -> None:
        for result in self.found.values():  # of processes that crashed
            self._write(result)
        self.found.clear()

    def _write(self, result: Result) -> None:
        if self.file:
            with self.file.open("a") as file:
                file.write(json.dumps(vars(result)) + "\n")


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def read_results(file: Path) -> list[Result]:
    """Returns the results of a run, in the order in which its tests ended; none without a file."""
    if not file.exists():
        return []
    return [Result(**json.loads(line)) for line in file.read_text().splitlines()]
