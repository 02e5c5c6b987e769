"""Locks: one Grove per `var` directory, and one per port.

Invariant: the holder of the lock is alive; the kernel releases the lock when its holder ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path

from webapp.config.installation import UP
from workers.local.errors import StartError


class VarLock:
    """The lock on a `var` directory; its file names the address of the Grove that holds it."""

    def __init__(self, var: Path):
        self.path = var / "lock"
        self._file: int | None = None

    def take(self, address: str) -> None:
        """Takes the lock; raises `StartError` with the holder's address if it is held."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(
                f"{self.path.parent} cannot be written: {error.strerror}.",
                "Give that directory to this user, or name another one in GROVE_VAR.",
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise StartError(
                f"Grove is already running on {self.path.parent}, at {self.path.read_text()}.",
                "Use that one, or stop it with Ctrl-C where it was started.",
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, address.encode(), 0)
        self._file = file

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, and with it the contents of `var`."""
        return self._file is not None

    def release(self) -> None:
        """Releases the lock; does nothing when it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def require_free(port: int) -> None:
    """Raises `StartError` if another program listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise StartError(
                f"This account may not listen on port {port}.",
                f"Choose one above 1023: GROVE_PORT=8010 {UP}.",
            ) from None
        except OSError:
            raise StartError(
                f"Port {port} is in use by another program.",
                f"Choose another one: GROVE_PORT={port + 1} {UP}.",
            ) from None


def answers(port: int) -> bool:
    """Returns whether something accepts connections on the port."""
    with contextlib.closing(socket.socket()) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
