"""In-memory standard library, for programs without a root or file system of their own; sizes and
mappings of files that the kernel does not describe.

Invariant: after `load`, an import of the standard library makes no system call that takes a path,
and no page of a library remains that a program could be the first to read. Standard library only:
loaded by path in the zygote, before its walls.
"""

# ruff: noqa: PTH118, PTH119, PTH120, PTH122, PTH123
# ruff: noqa: PTH116, PTH208

import ctypes
import errno
import marshal
import mmap
import os
import stat
import sys
import types
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import MAGIC_NUMBER, cache_from_source
from typing import Any

_LEFT_OUT = {
    "test", "tests", "idlelib", "turtledemo", "ensurepip", "site-packages", "dist-packages",
    "__pycache__",
}  # fmt: skip
# Modules that are shared libraries cost every fork their mappings. Left out are those for tests,
# terminals, displays, sound, networks and accounts, file databases, East Asian encodings, and those
# that another module can replace.
_LEFT_OUT_LIBRARIES = (
    "_test", "_ctypes_test", "xx", "_xx", "readline", "_tkinter", "_curses", "termios", "audioop",
    "ossaudiodev", "_ssl", "nis", "_posixshmem", "_lsprof", "_crypt", "spwd",
    "syslog", "_dbm", "_gdbm", "_codecs_", "_multibytecodec", "_md5", "_sha1", "_sha256", "_sha3",
    "_uuid", "_zoneinfo", "_asyncio", "_queue", "_elementtree",
)  # fmt: skip
_POPULATE_READ = 22
_SOURCE_MASK = 0xFFFFFFFF

_libc = ctypes.CDLL(None, use_errno=True)

Record = tuple[str, bool, bool, int, int]
"""Path, whether it is a package, whether it is compiled; start and end of its text or code."""


class Library:
    """Finder and loader of the modules of the standard library, whose code is in `memory`;
    `mapped` holds the paths of those that are shared libraries."""

    def __init__(self, records: dict[str, Record], memory: mmap.mmap, mapped: dict[str, str]):
        self._records = records
        self._memory = memory
        self._mapped = mapped

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._mapped:
            file = self._mapped[name]
            return ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        if name not in self._records:
            return None
        origin, is_package, *_ = self._records[name]
        spec = ModuleSpec(name, self, origin=origin, is_package=is_package)  # type: ignore[arg-type]
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(origin)]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)  # nosec B102

    def get_code(self, name: str) -> types.CodeType:
        origin, _, compiled, start, end = self._records[name]
        data = self._memory[start:end]
        if compiled:
            return marshal.loads(data)  # nosec B302
        return compile(data, origin, "exec", dont_inherit=True)

    def get_source(self, name: str) -> None:
        """Returns None: the text of a module is not kept."""
        return None

    def is_package(self, name: str) -> bool:
        return self._records[name][1]


def load() -> None:
    """Loads all modules of the standard library into memory, and has imports find them there.

    Raises:
        OSError: a file of the library cannot be read.
    """
    records: dict[str, Record] = {}
    descriptor = os.memfd_create("library", os.MFD_CLOEXEC)
    end = 0
    for name, path in _modules():
        if name not in records:
            compiled, data = _content(path)
            with memoryview(data) as left:
                while left:
                    left = left[os.write(descriptor, left) :]
            is_package = os.path.basename(path) == "__init__.py"
            records[name] = (path, is_package, compiled, end, end + len(data))
            end += len(data)
    if not records:
        folders = ", ".join(filter(None, sys.path))
        raise OSError(f"no file of Python's library can be read in {folders}{_refusal()}")
    # Private, so that no program can change it for others; a fork copies nothing of it.
    memory = mmap.mmap(descriptor, end, mmap.MAP_PRIVATE, mmap.PROT_READ)
    os.close(descriptor)
    library = Library(records, memory, _map_libraries())
    sys.meta_path.insert(-1, library)  # type: ignore[arg-type]
    _read_all_pages()


def _refusal() -> str:
    """Returns why the library's folder cannot be read, and the remedy; nothing if it can be.

    In a user namespace of the sandbox a capability, such as CAP_DAC_READ_SEARCH, does not hold for
    files of other accounts.
    """
    try:
        os.listdir(os.path.dirname(os.__file__))
    except PermissionError as error:
        return f": {error}; let every account read it (chmod o+rX on it and all folders above it)"
    except OSError as error:
        return f": {error}"
    return ""


def _modules() -> Iterator[tuple[str, str]]:
    """Yields name and path of every module that is a Python file, in order of the search path."""
    for top in filter(os.path.isdir, sys.path):
        for folder, inner, files in os.walk(top):
            inner[:] = sorted(n for n in inner if n.isidentifier() and n not in _LEFT_OUT)
            package = os.path.relpath(folder, top).replace(os.sep, ".").removeprefix(".")
            for file in sorted(files):
                stem, kind = os.path.splitext(file)
                if kind == ".py":
                    name = package if stem == "__init__" else f"{package}.{stem}".lstrip(".")
                    if name:
                        yield name, os.path.join(folder, file)


def _content(path: str) -> tuple[bool, bytes]:
    """Returns (True, compiled code) of a module if its cache is up to date, or (False, text)."""
    status = os.stat(path)
    state = [int(status.st_mtime) & _SOURCE_MASK, status.st_size & _SOURCE_MASK]
    with suppress(OSError, NotImplementedError), open(cache_from_source(path), "rb") as file:
        header = file.read(16)
        words = memoryview(header[4:]).cast("I").tolist() if len(header) == 16 else []
        if header[:4] == MAGIC_NUMBER and words in ([0, *state], [1, *words[1:]]):
            return True, file.read()
    with open(path, "rb") as file:
        return False, file.read()


def _map_libraries() -> dict[str, str]:
    """Maps all modules that are shared libraries, with their dependencies; returns paths by name.

    The GNU C library recognizes a mapped path without opening the file; with other C libraries the
    modules are imported at once.
    """
    has_glibc = "CS_GNU_LIBC_VERSION" in os.confstr_names
    mapped: dict[str, str] = {}
    for top in filter(os.path.isdir, sys.path):
        for file in sorted(os.listdir(top)):
            name, _, suffix = file.partition(".")
            if f".{suffix}" not in EXTENSION_SUFFIXES or name.startswith(_LEFT_OUT_LIBRARIES):
                continue
            with suppress(ImportError, OSError):
                if has_glibc:
                    ctypes.CDLL(os.path.join(top, file))
                    mapped.setdefault(name, os.path.join(top, file))
                else:
                    __import__(name)
    return mapped


def _read_all_pages() -> None:
    """Reads every page of the mapped files, so that no page is cold for a program to warm."""
    with open("/proc/self/maps") as file:
        lines = [line.split() for line in file]
    for bounds, rights, _, _, inode, *_ in lines:
        if inode != "0" and rights[0] == "r":
            start, end = (int(word, 16) for word in bounds.split("-"))
            _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _POPULATE_READ)


class Mapping(mmap.mmap):
    """Replaces `mmap.mmap` where a child may not do as it does.

    Shared memory takes a number of a file. A child has no other process to share it with, and gets
    memory of its own. `mmap` examines and duplicates a file, which a child may not do with those
    that it was given, and gets a copy.
    """

    def __new__(
        cls, fileno: int, length: int, flags: int = mmap.MAP_SHARED, *rest: Any, **named: Any
    ) -> "Mapping":
        if fileno == -1 and flags & ~mmap.MAP_ANONYMOUS == mmap.MAP_SHARED:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            if named.pop("access", mmap.ACCESS_DEFAULT) == mmap.ACCESS_READ:
                named["prot"] = mmap.PROT_READ
        if fileno >= 0 and length == 0:
            length = os.fstat(fileno).st_size - named.get("offset", 0)
        try:
            return super().__new__(cls, fileno, length, flags, *rest, **named)
        except PermissionError as error:
            if fileno < 0 or error.errno != errno.EPERM:
                raise
        copy = super().__new__(cls, -1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        copy[:] = os.pread(fileno, length, named.get("offset", 0))
        return copy


_fstat = os.fstat


def fstat(fd: int) -> os.stat_result:
    """Replaces `os.fstat`: where the kernel does not describe an open file, returns its kind and
    size; all other fields are fixed.

    Raises:
        OSError: the descriptor is not open.
    """
    with suppress(PermissionError, FileNotFoundError):  # the latter where no path leads to a file
        return _fstat(fd)
    try:
        offset = os.lseek(fd, 0, os.SEEK_CUR)
    except OSError as error:
        if error.errno != errno.ESPIPE:
            raise
        return os.stat_result((stat.S_IFIFO | 0o600, 0, 0, 1, 0, 0, 0, 0, 0, 0))
    size = os.lseek(fd, 0, os.SEEK_END)
    is_null = os.lseek(fd, 1, os.SEEK_SET) != 1
    os.lseek(fd, offset, os.SEEK_SET)
    kind = stat.S_IFCHR | 0o666 if is_null else stat.S_IFREG | 0o777
    return os.stat_result((kind, 0, 0, 1, 0, 0, size, 0, 0, 0))
