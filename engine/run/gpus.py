"""Readings of a node's GPUs by NVIDIA's management library (NVML), through the package
`nvidia-ml-py`. Without the package, the driver or a device there are no readings.

Units: per cent, MB (2**20 bytes), watts. Source: the NVML API reference,
https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType
from typing import Any


class GpuReader:
    """Reader of all GPUs of this node, used by the engine or not; `library` is `pynvml` or has its
    interface."""

    def __init__(self, library: ModuleType | Any | None = None):
        self._library = _pynvml() if library is None else library
        self._handles: list[Any] = []
        if self._library is not None:
            try:
                self._library.nvmlInit()
                number = self._library.nvmlDeviceGetCount()
                self._handles = [self._library.nvmlDeviceGetHandleByIndex(i) for i in range(number)]
            except self._library.NVMLError:  # no driver, or it does not respond
                self._handles = []

    def read(self) -> list[dict[str, float]]:
        """Returns for each device gpu_percent, gpu_memory_percent, gpu_memory_mb and gpu_power_w,
        without those that it does not report (some report no power)."""
        return [self._device(handle) for handle in self._handles]

    def _device(self, handle: Any) -> dict[str, float]:
        library: Any = self._library
        readings: dict[str, float] = {}
        with suppress(library.NVMLError):
            readings["gpu_percent"] = float(library.nvmlDeviceGetUtilizationRates(handle).gpu)
        with suppress(library.NVMLError):
            memory = library.nvmlDeviceGetMemoryInfo(handle)
            readings["gpu_memory_mb"] = round(memory.used / 2**20, 1)
            readings["gpu_memory_percent"] = round(100 * memory.used / max(1, memory.total), 1)
        with suppress(library.NVMLError):
            readings["gpu_power_w"] = round(library.nvmlDeviceGetPowerUsage(handle) / 1000, 1)
        return readings


def _pynvml() -> ModuleType | None:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml
