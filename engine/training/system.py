"""Samples what the run costs: the engine and its actors, and all nodes of its cluster."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from engine.events import SystemSample
from engine.training.cluster_readings import ClusterReader

EVERY_SECONDS = 5.0


class SystemSampler:
    """CPU and memory of this process and all its descendants; `by_node` of the whole machines.
    `folder` lies on the disk whose use is told."""

    def __init__(self, folder: str | Path = "/") -> None:
        self._next = 0.0
        self._cluster = ClusterReader(folder)
        self._processes: dict[int, psutil.Process] = {}

    def due(self) -> SystemSample | None:
        """A sample, if the last one is old enough. CPU is in percent of one core."""
        now = time.monotonic()
        if now < self._next:
            return None
        self._next = now + EVERY_SECONDS
        me = psutil.Process()
        found = {p.pid: p for p in [me, *me.children(recursive=True)]}
        # cpu_percent compares with the last call on the same object.
        self._processes = {pid: self._processes.get(pid, process) for pid, process in found.items()}
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
