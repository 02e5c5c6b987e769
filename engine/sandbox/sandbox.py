"""Runs programs that a model wrote, several at once, each in a process of its own.

Invariant: the calling process is never forked, and no program can delay or change the verdict
of another: every job gets a fresh child of a zygote, and the zygotes belong to slots that run
one job at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from engine.config import SandboxConfig
from engine.sandbox.job import Execution, Job
from engine.sandbox.slot import Slot


class Sandbox:
    """`config.workers` slots. Zygotes start with the first job that needs them.

    `run` may be called from several threads; their jobs share the slots.
    """

    def __init__(self, config: SandboxConfig):
        self.config = config
        # A zygote dies with the thread that started it, so the threads are the slots.
        self._threads = ThreadPoolExecutor(config.workers, thread_name_prefix="sandbox")
        self._local = threading.local()
        self._slots: list[Slot] = []

    def run(self, jobs: Sequence[Job]) -> list[Execution]:
        """Run all jobs and wait for them; results are in the order of the jobs.

        Each takes at most `wall_seconds` plus a fixed grace, twice if its zygote broke.

        Raises:
            SandboxUnavailable: a zygote cannot be started.
            ValueError: an argument is not a plain value.
        """
        futures = [self._threads.submit(self._run_one, job) for job in jobs]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def zygote_pids(self) -> list[int]:
        return [slot.pid for slot in self._slots if slot.pid is not None]

    def walls(self) -> tuple[str, ...]:
        """Names of the walls around programs beyond rlimits; starts a slot if none is up."""
        return self._threads.submit(self._walls_of_slot).result()

    def close(self) -> None:
        """Kill the zygotes and all they run; waits for jobs that are under way."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        for slot in self._slots:
            slot.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_one(self, job: Job) -> Execution:
        return self._slot().run(job)

    def _walls_of_slot(self) -> tuple[str, ...]:
        slot = self._slot()
        if slot.pid is None:
            slot.start()
        return slot.walls

    def _slot(self) -> Slot:
        if not hasattr(self._local, "slot"):
            self._local.slot = Slot(self.config)
            self._slots.append(self._local.slot)
        return self._local.slot
