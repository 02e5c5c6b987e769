"""Spool of one process: an append-only file of everything that it logged, sent or not.

Invariants:
- The first line is the header (whose run it is); every further line is an event without its seq,
  numbered from 1. A line is in the file, or in memory while the file cannot be written, before
  `append` returns, and `append` never raises for want of room.
- While the process lives it holds a lock on the file, which the kernel releases when it dies: a
  file that can be locked belongs to nobody.
- A torn last line (the machine died) is ignored by readers and removed by the next owner.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

try:
    import fcntl
except ImportError:  # Windows: two owners of a file are not noticed there
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".spool"
SENT = ".sent"
"""Added to the name of a file all of whose lines the server has."""
MOST_MEMORY = 256 * 2**20
"""Bytes that wait in memory while the file cannot be written; further lines are counted as lost."""
_BLOCK = 2**20


class Header(msgspec.Struct, frozen=True):
    """Identity of a run and of the process that logs to it."""

    session: str
    key: str
    project: str = ""
    """Name or number; empty for the only one that the token sees."""
    entity: str = ""
    """Workspace, where two have a project of this name."""
    name: str = ""
    group: str = ""
    resume: str = "never"
    host: str = ""
    alerts_after: float = 0.0
    """Unix seconds; what happened until then raises no alert, as it is imported."""
    spool: int = 1
    """Version of the file's format."""


class Occupied(Exception):
    """Raised for a file whose process is alive."""


@dataclass
class Position:
    """Place of a reader: it has read the first `lines` lines; line `at` begins at byte `offset`."""

    lines: int = 0
    at: int = 1
    offset: int = 0


class Spool:
    """Create one with `create`, or open a dead process's with `open_dead`. Thread-safe."""

    def __init__(self, path: Path, header: Header, descriptor: int, lines: int, size: int):
        self.path, self.header = path, header
        self._descriptor = descriptor
        self._in_file, self._size = lines, size
        self._memory: list[bytes] = []
        self._memory_bytes = 0
        self._lock = threading.Lock()
        self._dirty = True
        self.lost = 0
        """Lines that found room neither in the file nor in memory."""
        self.problem: OSError | None = None
        """Why the file cannot be written; None while it can."""

    @staticmethod
    def create(directory: Path, header: Header, stamp: str) -> Spool:
        """Creates the file of a new process; where none can be, its lines wait in memory."""
        path = directory / f"{stamp}-{header.key}-{header.session[:8]}{SUFFIX}"
        first = msgspec.json.encode(header) + b"\n"
        descriptor = -1
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND
            descriptor = os.open(path, flags, 0o600)
            _take(descriptor, path)
            if os.write(descriptor, first) < len(first):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError as error:
            if descriptor >= 0:  # a file without its header is no spool
                with suppress(OSError):
                    path.unlink()
                os.close(descriptor)
            spool = Spool(path, header, -1, 0, 0)
            spool.problem = error
            return spool
        return Spool(path, header, descriptor, 0, len(first))

    @staticmethod
    def open_dead(path: Path) -> Spool:
        """Opens the file of a process that has ended, to send or to end it.

        Raises:
            Occupied: its process is alive. ValueError: it is no spool.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        try:
            _take(descriptor, path)
            header, lines, size = _scanned(descriptor, path)
            if os.fstat(descriptor).st_size > size:
                os.ftruncate(descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        return Spool(path, header, descriptor, lines, size)

    @property
    def lines(self) -> int:
        return self._in_file + len(self._memory)

    def append(self, *lines: bytes) -> None:
        """Appends the JSON of events; several are in the file all together or not at all."""
        text = b"\n".join(lines) + b"\n"
        with self._lock:
            if (self._memory and not self._empty_memory()) or not self._write(text):
                for line in lines:
                    self._remember(line)

    def append_to_file(self, *lines: bytes) -> None:
        """The same, but none is kept in memory, from where it would be sent without a trace in the
        file. Raises OSError: the file cannot be written; no line is recorded."""
        with self._lock:
            if not self._write(b"\n".join(lines) + b"\n"):
                raise self.problem or OSError(f"{self.path}: the spool cannot be written")

    def sync(self) -> None:
        """Makes the lines in the file survive a crash of the machine; retries those in memory."""
        with self._lock:
            self._empty_memory()
            is_due = self._dirty and self._descriptor >= 0
            self._dirty = False
        if is_due:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self.problem = error

    def read(self, position: Position, most_lines: int, most_bytes: int) -> list[bytes]:
        """Returns the next lines and moves the position behind them."""
        with self._lock:
            end, in_file = self._size, self._in_file
            waiting = self._memory[max(0, position.lines - in_file) :]
        batch: list[bytes] = []
        size = 0
        for line in self._from(position, end, waiting):
            if batch and size + len(line) > most_bytes:
                break
            batch.append(line)
            size += len(line)
            if len(batch) == most_lines:
                break
        position.lines += len(batch)
        return batch

    def close(self, *, sent: bool = False) -> None:
        """Releases the file; one that is `sent` gets another name."""
        with self._lock:
            self._empty_memory()
            if self._descriptor < 0:
                return
            if sent:
                self.path.replace(self.path.with_name(self.path.name + SENT))
            os.close(self._descriptor)
            self._descriptor = -1

    def _from(self, position: Position, end: int, waiting: list[bytes]) -> Iterator[bytes]:
        """Yields the lines after the position, those that are in memory last; its `offset`
        follows."""
        position.offset = position.offset or self._header_size()
        for number, after, line in self._in_the_file(position, end):
            if number > position.lines:
                yield line
            position.at, position.offset = number + 1, after
        yield from waiting

    def _in_the_file(self, position: Position, end: int) -> Iterator[tuple[int, int, bytes]]:
        """Yields (number, offset of the next line, line) from `position.at` on."""
        number, offset, rest = position.at, position.offset, b""
        start = offset
        while self._descriptor >= 0 and start < end:
            block = os.pread(self._descriptor, min(_BLOCK, end - start), start)
            if not block:
                return
            start += len(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                offset += len(line) + 1
                yield number, offset, line
                number += 1

    def _header_size(self) -> int:
        if self._descriptor < 0:
            return 0
        return os.pread(self._descriptor, _BLOCK, 0).index(b"\n") + 1

    def _write(self, text: bytes) -> bool:
        """Appends whole lines; false, and the file as before, if they do not fit."""
        if self._descriptor < 0:
            return False
        try:
            written = os.write(self._descriptor, text)
            while written < len(text):
                written += os.write(self._descriptor, text[written:])
        except OSError as error:
            self.problem = error
            os.ftruncate(self._descriptor, self._size)
            return False
        self._size += len(text)
        self._in_file += text.count(b"\n")
        self._dirty, self.problem = True, None
        return True

    def _empty_memory(self) -> bool:
        """Writes what waits in memory; true if nothing waits any more."""
        if self._memory and self._write(b"\n".join(self._memory) + b"\n"):
            self._memory, self._memory_bytes = [], 0
        return not self._memory

    def _remember(self, line: bytes) -> None:
        if self._memory_bytes + len(line) > MOST_MEMORY:
            self.lost += 1
            return
        self._memory.append(line)
        self._memory_bytes += len(line)


def unfinished(directory: Path) -> list[Path]:
    """Returns the spools below a directory that are not known to be sent, oldest first."""
    return sorted(directory.rglob(f"*{SUFFIX}"))


def _take(descriptor: int, path: Path) -> None:
    """Locks the file. A lock of POSIX: children of a fork do not inherit it."""
    if fcntl is None:
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise Occupied(f"{path}: the process that writes it is alive") from None
        # A file system without locks: two owners are not noticed there.


def _scanned(descriptor: int, path: Path) -> tuple[Header, int, int]:
    """Returns header, number of whole lines and their bytes."""
    # Closing any descriptor of the file would release its lock.
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        first = file.readline()
        try:
            header = msgspec.json.decode(first, type=Header)
        except msgspec.DecodeError:
            raise ValueError(f"{path}: this is no spool of grove") from None
        lines, size = 0, len(first)
        for line in file:
            if line.endswith(b"\n"):
                lines, size = lines + 1, size + len(line)
    return header, lines, size
