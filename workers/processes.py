"""Status and end of processes that are not children of this one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Returns whether it has ended; an unreaped zombie counts as ended."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_ended(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Waits until all have ended, at most `seconds`; returns those that have not."""
    deadline = time.monotonic() + seconds
    running = list(processes)
    while running := [process for process in running if not has_ended(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return running


def family(pid: int) -> list[psutil.Process]:
    """Returns `pid` and all its current descendants; empty if it has ended."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """SIGKILLs each that is still the same process."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
