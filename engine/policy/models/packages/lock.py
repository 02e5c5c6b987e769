"""Lock on a working folder, which its holder may remove.

Invariant: at most one process is inside `locked_folder` of a path. The lock is the kernel's, on the
folder itself, so it ends with its holder and leaves no file.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.1


class LockTimeout(Exception):
    """Another process held the folder until the deadline."""


@contextmanager
def locked_folder(folder: Path, seconds: float, on_wait: Callable[[], None]) -> Iterator[None]:
    """Creates the folder, waits until no other process holds it, and holds it in the block; calls
    `on_wait` once if it has to wait.

    Raises:
        LockTimeout: it was held for all of `seconds`.
        OSError: the folder cannot be created.
    """
    deadline, waited = time.monotonic() + seconds, False
    while True:
        descriptor = _try_lock(folder)
        if descriptor is not None:
            break
        if time.monotonic() > deadline:
            raise LockTimeout
        if not waited:
            on_wait()
            waited = True
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        os.close(descriptor)


def _try_lock(folder: Path) -> int | None:
    """Returns the descriptor that holds the folder; None if another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:  # its holder has just removed it
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):  # held, or removed between opening and locking
        pass
    os.close(descriptor)
    return None
