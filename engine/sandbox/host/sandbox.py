"""Sandbox: runs programs that a model wrote, several concurrently, each in its own process.

Invariant: the calling process is never forked, and no program can delay or change the verdict
of another: every job gets a fresh child of a zygote, and the zygotes belong to slots that run
one job at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from engine.config.sandbox import SandboxConfig
from engine.sandbox.host.job import AnyJob, Execution
from engine.sandbox.host.slot import Slot
from engine.sandbox.limits import SandboxCaps

Item = TypeVar("Item")
Result = TypeVar("Result")


class Sandbox:
    """Pool of `config.workers` slots. Zygotes start with the first job that needs them.

    Thread-safe: jobs of several threads share the slots. `caps` are those of the operator; None
    takes those of this process's environment.
    """

    def __init__(self, config: SandboxConfig, caps: SandboxCaps | None = None):
        self.caps = SandboxCaps.from_environment() if caps is None else caps
        self.config = self.caps.of_settings(config)
        # A zygote dies with the thread that started it, so the threads are the slots.
        self._threads = ThreadPoolExecutor(config.workers, thread_name_prefix="sandbox")
        self._local = threading.local()
        self._slots: list[Slot] = []

    def run(self, jobs: Sequence[AnyJob]) -> list[Execution]:
        """Runs all jobs and waits for them; returns results in the order of the jobs.

        Each job takes at most its wall time plus a fixed grace, twice if its zygote broke.

        Raises:
            SandboxUnavailable: a zygote cannot be started.
            ValueError: an argument is not a plain value.
        """
        return self.each(lambda run, job: run(job), jobs)

    def each(
        self,
        task: Callable[[Callable[[AnyJob], Execution], Item], Result],
        items: Sequence[Item],
    ) -> list[Result]:
        """Calls `task(run, item)` for every item, where `run` runs a job in the slot of the task.

        Tasks of different slots run concurrently; results are in the order of the items. Raises
        the exception of the first task, in that order, that failed.
        """
        futures = [self._threads.submit(lambda i=item: task(self._slot().run, i)) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def zygote_pids(self) -> list[int]:
        """Returns the process ids of all zygotes that run."""
        return [pid for slot in self._slots for pid in slot.pids]

    def tier(self) -> str:
        """Returns `full`, `restricted`, or `none` where the settings allow it; starts a slot if
        necessary."""
        return self._threads.submit(lambda: self._slot().programs().tier).result()

    def walls(self) -> tuple[str, ...]:
        """Returns the names of the walls around programs beyond rlimits; starts a slot if none is
        running."""
        return self._threads.submit(lambda: self._slot().programs().walls).result()

    def close(self) -> None:
        """Kills the zygotes and all that they run; waits for jobs in flight."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        for slot in self._slots:
            slot.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _slot(self) -> Slot:
        if not hasattr(self._local, "slot"):
            self._local.slot = Slot(self.config)
            self._slots.append(self._local.slot)
        return self._local.slot
