"""Readings of one machine: CPU, memory, disk, network and GPUs.

Rates are means since the previous reading, so the first reading has none. All values come from
kernel counters; a reading takes some milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from engine.run.gpus import GpuReader


class NodeReader:
    """Reader of this machine; `folder` is on the disk whose use it reports."""

    def __init__(
        self,
        folder: str | Path = "/",
        gpus: GpuReader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._folder, self._clock = str(folder), clock
        self._gpus = gpus or GpuReader()
        self._before: tuple[float, dict[str, int]] | None = None
        psutil.cpu_percent()  # later calls compare with this one

    def read(self) -> dict[str, float]:
        """Returns `node_METRIC` of the machine and `gpu_METRIC:INDEX` of each device; the names
        hold the units."""
        memory, disk = psutil.virtual_memory(), psutil.disk_usage(self._folder)
        readings = {
            "node_cpu_percent": psutil.cpu_percent(),
            "node_memory_percent": memory.percent,
            "node_memory_mb": round((memory.total - memory.available) / 2**20, 1),
            "node_disk_percent": disk.percent,
            "node_disk_free_gb": round(disk.free / 2**30, 1),
            **self._rates(),
        }
        for index, device in enumerate(self._gpus.read()):
            readings |= {f"{name}:{index}": value for name, value in device.items()}
        return readings

    def _rates(self) -> dict[str, float]:
        """Returns rates in MB (2**20 bytes) per second."""
        now, counters = self._clock(), _counters()
        before, self._before = self._before, (now, counters)
        if before is None or now <= before[0]:
            return {}
        seconds, old = now - before[0], before[1]
        # A removed device or a restarted counter lowers a sum.
        return {
            name: round(max(0, value - old.get(name, value)) / 2**20 / seconds, 3)
            for name, value in counters.items()
        }


def _counters() -> dict[str, int]:
    readings: dict[str, int] = {}
    disk: Any = psutil.disk_io_counters()  # None in some containers
    if disk is not None:
        readings |= {
            "node_disk_read_mb_per_s": disk.read_bytes,
            "node_disk_write_mb_per_s": disk.write_bytes,
        }
    network = psutil.net_io_counters()
    if network is not None:
        readings |= {
            "node_network_in_mb_per_s": network.bytes_recv,
            "node_network_out_mb_per_s": network.bytes_sent,
        }
    return readings
