"""Shared libraries that the standard library is linked with: all that a root has to hold of them.

Standard library only: loaded by path in the zygote, before its walls.
"""

# ruff: noqa: PTH112, PTH118, PTH123, PTH208

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES

_LINK_MAP = 2  # RTLD_DI_LINKMAP
_LEFT_OUT = ("_tkinter", "_test", "_ctypes_test", "xx")
# Those that the C library loads by itself, and those of which only old programs name the file.
_BY_NAME = ("libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1")


class _Loaded(ctypes.Structure):
    """One library in the loader's list (struct link_map)."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("path", ctypes.c_char_p),
        ("dynamic", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
    ]


def libraries(library: str) -> list[str]:
    """Returns the paths under which the loader finds the libraries that the extension modules of
    the standard library, the folder `library`, need and this process has not loaded.

    They are loaded in a process of its own, so that no fork of this one has to copy their mappings.
    """
    source, target = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException), open(target, "wb") as file:
            before = set(_loaded())
            _load_all(library)
            file.write(b"\0".join(set(_loaded()) - before))
        os._exit(0)
    os.close(target)
    with open(source, "rb") as file:
        paths = file.read().split(b"\0")
    os.waitpid(pid, 0)
    return sorted({os.fsdecode(path) for path in paths if path.startswith(b"/")})


def _load_all(library: str) -> None:
    folders = [f for f in (library, os.path.join(library, "lib-dynload")) if os.path.isdir(f)]
    modules = [
        os.path.join(folder, file)
        for folder in folders
        for file in os.listdir(folder)
        if file.endswith(tuple(EXTENSION_SUFFIXES)) and not file.startswith(_LEFT_OUT)
    ]
    for path in (*_BY_NAME, *modules):
        with suppress(OSError):
            ctypes.CDLL(path)


def _loaded() -> Iterator[bytes]:
    """Yields the paths of all libraries that are loaded; empty for the program itself."""
    program = ctypes.CDLL(None)
    at = ctypes.c_void_p()
    program.dlinfo(ctypes.c_void_p(program._handle), _LINK_MAP, ctypes.byref(at))
    while at.value:
        loaded = _Loaded.from_address(at.value)
        yield loaded.path or b""
        at.value = loaded.next
