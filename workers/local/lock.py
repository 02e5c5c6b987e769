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

    def take(self) -> None:
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
            # It is empty until the holder has its port.
            address = self.path.read_text()
            where = f", at {address}" if address else ", and is just starting"
            raise StartError(
                f"Grove is already running on {self.path.parent}{where}.",
                "Use that one, or stop it with Ctrl-C where it was started.",
            ) from None
        os.ftruncate(file, 0)
        self._file = file

    def note(self, address: str) -> None:
        """Writes the address of this Grove to the lock that it holds."""
        assert self._file is not None
        os.pwrite(self._file, address.encode(), 0)

    @property
    def held(self) -> bool:
        """Whether this object holds the lock, and with it the contents of `var`."""
        return self._file is not None

    def release(self) -> None:
        """Releases the lock; does nothing when it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def take_port(port: int) -> socket.socket:
    """Returns a socket bound to the port; with 0, to one that is free.

    It never listens: until it is closed, the system gives the port to no program that wants any
    free one, and the web process may listen on it, also after a restart.

    Raises:
        StartError: another program listens on the port, or this account may not.
    """
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", port))
    except OSError as error:
        taken.close()
        if isinstance(error, PermissionError):
            raise StartError(
                f"This account may not listen on port {port}.",
                f"Choose one above 1023: GROVE_PORT=8010 {UP}.",
            ) from None
        raise StartError(
            f"Port {port} is in use by another program.",
            f"Choose another one: GROVE_PORT={port + 1} {UP}.",
        ) from None
    return taken


def answers(port: int) -> bool:
    """Returns whether something accepts connections on the port."""
    with contextlib.closing(socket.socket()) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
