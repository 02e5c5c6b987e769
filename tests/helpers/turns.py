"""Which process of the suite runs which test when: one slow test at a time, light ones beside it.

Tests marked `slow` start many processes or compute for long. Two of them side by side starve each
other on two cores, and overrun deadlines that each of them meets alone.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling
    from xdist.workermanage import WorkerController

FIRST = "gw0"
BROWSER = "tests/e2e/"
"""Its files share a browser and a web process, so one process of the suite runs them all."""


def slow_files_first(items: list[pytest.Item]) -> None:
    """Sorts the tests, file by file, in place: those with slow tests first."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


class OneSlowAtATime:
    """Holds a lock that all processes of the suite share while a slow test runs."""

    def __init__(self, folder: Path):
        """`folder`: common to all processes."""
        self._path = folder / "slow.lock"

    # Outermost, so that the time limit of a test does not run while it waits for its turn.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not item.get_closest_marker("slow"):
            return (yield)
        # Of the process alone, as no flock is: what a test forks and leaves behind holds nothing.
        with self._path.open("w") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            return (yield)


def from_both_ends(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Returns a scheduler that gives the first process files from the front of the order, where
    the slow ones are, and all others files from its back."""
    from xdist.scheduler import LoadFileScheduling

    class FromBothEnds(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return BROWSER if nodeid.startswith(BROWSER) else super()._split_scope(nodeid)

        def _assign_work_unit(self, node: WorkerController) -> None:
            if node.gateway.id != FIRST:
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

        def _reschedule(self, node: WorkerController) -> None:
            super()._reschedule(node)
            # A process keeps its last test until it gets another, or is told that there is none.
            # xdist gives the successor of a process that crashed one file, and waits for ever if
            # that has one test.
            if node.shutting_down:
                return
            while self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
                self._assign_work_unit(node)
            if not self.workqueue:
                node.shutdown()

        def remove_node(self, node: WorkerController) -> str | None:
            """As in xdist, but what crashed a process is not given to the next one."""
            workload = self.assigned_work.pop(node)
            left = (
                (unit, test)
                for unit in workload.values()
                for test, is_done in unit.items()
                if not is_done
            )
            unit, crashed = next(left, (None, None))
            if unit is None:
                return None
            unit[crashed] = True
            self.workqueue.update(
                {scope: unit for scope, unit in workload.items() if not all(unit.values())}
            )
            for other in self.nodes:
                self._reschedule(other)
            return crashed

    return FromBothEnds(config, log)
