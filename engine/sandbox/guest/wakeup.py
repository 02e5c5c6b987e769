"""Wakeup pair, by which one thread wakes another, in place of `socket.socketpair`.

Invariant: it takes no inode number from the host, as a pair of sockets or a pipe does. Through
those numbers a program could signal to programs that run later. asyncio, which makes a pair for
every loop, needs no more than this. Standard library only: loaded by path in the zygote.
"""

import os
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any


class End:
    """One end of a pair: data sent at either end is received at both, as zeros."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Returns its descriptor; -1 once it is closed."""
        return self._descriptor

    def setblocking(self, flag: bool) -> None:
        os.set_blocking(self._descriptor, flag)

    def send(self, data: bytes) -> int:
        """Sends all of `data`, up to 2**63 bytes.

        Raises:
            OSError: the end is closed.
        """
        if data:
            os.eventfd_write(self._descriptor, len(data))
        return len(data)

    def recv(self, size: int) -> bytes:
        """Returns as many zeros as were sent and not yet received, at most `size`.

        Raises:
            BlockingIOError: there are none, and the end is non-blocking.
            OSError: the end is closed.
        """
        sent = os.eventfd_read(self._descriptor)
        if sent > size:
            os.eventfd_write(self._descriptor, sent - size)
        return bytes(min(sent, size))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def pair(*_: Any, **__: Any) -> tuple[End, End]:
    """Returns two connected ends; ignores the socket family and kind in the arguments."""
    descriptor = os.eventfd(0, os.EFD_CLOEXEC)
    return End(descriptor), End(os.dup(descriptor))


class Finder:
    """Import hook that has `socket` make such pairs once a program imports it; preloading `socket`
    would slow each fork."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "socket":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next(filter(None, specs), None)
        if spec is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    def __init__(self, loader: Any):
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._loader.exec_module(module)
        module.socketpair = pair  # type: ignore[attr-defined]
