"""The conditions of a measurement: machine, load and version of the code."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from engine.resources.machine_cores import machine_cores

ROOT = Path(__file__).resolve().parents[1]
OWN_FILES = (":!docs/benchmarks.md", ":!docs/benchmarks.json", ":!docs/science")
"""Files that `all` and `claims` themselves write; they affect no measurement."""

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""Clocks of a measurement, in seconds: time that passes, and time of this process on its cores."""


@dataclass(frozen=True)
class Load:
    """Load of the machine."""

    average: float
    """Mean number of runnable processes over the last minute (the first of `uptime`)."""
    busy_percent: float
    """Share of all cores that was in use during one second."""

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def load() -> Load:
    """Returns the machine's current load; takes one second."""
    return Load(round(os.getloadavg()[0], 2), round(psutil.cpu_percent(interval=1.0), 1))


def machine() -> str:
    """Returns the processor, the number of cores for this process, and Python's version."""
    cores = machine_cores()
    return f"{_processor()}, {cores} cores, Python {platform.python_version()}"


def commit(root: Path = ROOT) -> str:
    """Returns the short hash of the checked-out commit, with `+changes` if files differ."""
    head = _git(root, "rev-parse", "--short=10", "HEAD")
    if not head:
        return "no repository"
    changed = _git(root, "status", "--porcelain", "--", ".", *OWN_FILES)
    return f"{head}+changes" if changed else head


def _git(root: Path, *arguments: str) -> str:
    """Returns git's output; empty without git or a repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
