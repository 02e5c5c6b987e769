"""System samples of a run: resource use of the engine, its actors and all nodes of its cluster.

Invariants: a separate thread takes samples at a fixed interval, however long a step takes; the loop
never waits for it, and a failing reading ends the samples, not the run. Their kind is no figure of
a run (`engine.events.timeline`): their positions depend on the clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from engine.events.log import EventLog
from engine.events.vocabulary import LogLine, SystemSample
from engine.run.cluster_readings import ClusterReader

EVERY_SECONDS = 10.0
FIRST_SECONDS = 1.0
"""Delay of the first sample: rates are means since an earlier reading."""
CLOSE_SECONDS = 5.0
"""Wait for a reading in progress when the run ends; one that takes longer is discarded."""


class SystemSampler:
    """Sampler of CPU and memory of this process and its descendants, and of whole machines in
    `by_node`. `folder` is on the disk whose use is reported."""

    def __init__(self, folder: str | Path = "/") -> None:
        self._cluster = ClusterReader(folder)
        self._processes: dict[int, psutil.Process] = {}

    def sample(self) -> SystemSample:
        """Returns current use; CPU in percent of one core, as a mean since the previous sample."""
        me = psutil.Process()
        processes = {p.pid: p for p in [me, *me.children(recursive=True)]}
        # `cpu_percent` compares with the previous call on the same object.
        self._processes = {
            pid: self._processes.get(pid, process) for pid, process in processes.items()
        }
        cpu = memory = 0.0
        for process in self._processes.values():
            try:
                cpu += process.cpu_percent()
                memory += process.memory_info().rss
            except psutil.Error:
                continue
        return SystemSample(
            cpu_percent=round(cpu, 1),
            memory_mb=round(memory / 2**20, 1),
            by_node=self._cluster.read(),
        )


@contextmanager
def sampling(
    log: EventLog,
    folder: str | Path = "/",
    every: float = EVERY_SECONDS,
    first: float = FIRST_SECONDS,
) -> Iterator[None]:
    """While the block runs, logs a sample `first` seconds after its start, then every `every`
    seconds; samples that a slow reading misses are skipped."""
    thread = _Sampling(log, SystemSampler(folder), every, first)
    thread.start()
    try:
        yield
    finally:
        thread.close()


class _Sampling(threading.Thread):
    """Thread that appends samples to a log until it is closed."""

    def __init__(self, log: EventLog, sampler: SystemSampler, every: float, first: float):
        super().__init__(name="system-sampler", daemon=True)
        self._log, self._sampler = log, sampler
        self._every, self._first = every, first
        self._closed = threading.Event()
        self._gate = threading.Lock()

    def run(self) -> None:
        try:
            self._sampler.sample()  # baseline of the first sample's rates
            due = time.monotonic() + self._first
            while not self._closed.wait(max(0.0, due - time.monotonic())):
                self._append(self._sampler.sample())
                due += self._every * max(1.0, (time.monotonic() - due) // self._every + 1)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self._append(LogLine("warning", f"no more samples of the system: {reason}"))

    def close(self) -> None:
        """Stops the thread; afterwards nothing is appended, not even by a reading in progress."""
        with self._gate:
            self._closed.set()
        self.join(CLOSE_SECONDS)

    def _append(self, payload: SystemSample | LogLine) -> None:
        with self._gate:
            if not self._closed.is_set():
                self._log.append(payload)
