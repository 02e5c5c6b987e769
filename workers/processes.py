"""Looking at and ending processes that are not our children."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

import psutil


def is_gone(process: psutil.Process) -> bool:
    """Whether it has ended; a zombie that nobody reaps has."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_gone(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all have ended, at most `seconds`; returns those that have not."""
    deadline = time.monotonic() + seconds
    left = list(processes)
    while left := [process for process in left if not is_gone(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


def family(pid: int) -> list[psutil.Process]:
    """`pid` and all its descendants, as they are now; empty if it is gone."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL each that is still the same process."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
