"""A pair of ends by which one thread wakes another, in place of `socket.socketpair`.

Invariant: it takes no number of a file from the host, as a pair of sockets or a pipe does. By those
numbers a program could leave a note for those that are run later. asyncio, which makes a pair for
every loop, needs no more than this. Standard library only: loaded by path in the zygote.
"""

import os
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any


class End:
    """One end of a pair: what is sent at either is received at both, as zeros."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Its descriptor; -1 once it is closed."""
        return self._descriptor

    def setblocking(self, flag: bool) -> None:
        os.set_blocking(self._descriptor, flag)

    def send(self, data: bytes) -> int:
        """Send all of up to 2**63 bytes.

        Raises:
            OSError: it is closed.
        """
        if data:
            os.eventfd_write(self._descriptor, len(data))
        return len(data)

    def recv(self, size: int) -> bytes:
        """As many zeros as were sent and not received before, at most `size`.

        Raises:
            BlockingIOError: there are none, and it does not block.
            OSError: it is closed.
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
    """Two connected ends, whatever the family and kind of sockets that are named."""
    descriptor = os.eventfd(0, os.EFD_CLOEXEC)
    return End(descriptor), End(os.dup(descriptor))


class Finder:
    """Has `socket` make such pairs once a program imports it; loaded before, it slows each fork."""

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
