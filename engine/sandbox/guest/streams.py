"""Standard streams of a program: counted and discarded for calls, real ones for a script.

Standard library only, imported by the zygote before it forks.
"""

import atexit
import builtins
import io
import os
import random
import sys
from collections.abc import Callable
from typing import Any

from failures import Failure, OutputLimit, exit_status


class BoundedOutput:
    """Replaces stdout and stderr: counts the output, keeps none, raises OutputLimit."""

    encoding, errors, closed = "utf-8", "strict", False

    def __init__(self, limit: int):
        self.limit = limit
        self.room = limit

    @property
    def buffer(self) -> "BoundedOutput":
        return self

    def write(self, data: str | bytes) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OutputLimit
        return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    seekable = isatty = readable

    def flush(self, **_: Any) -> None:
        pass

    close = reconfigure = flush


def silence(limit: int) -> BoundedOutput:
    """Replaces stdout and stderr by one `BoundedOutput`, which is returned, and seeds `random`."""
    sys.stdout = sys.stderr = output = BoundedOutput(limit)
    random.seed(0)  # the same program has to give the same answer again
    return output


def attach_standard_streams() -> None:
    """Opens text streams on descriptors 0, 1 and 2, with the buffers of a script."""
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115


_DEVICES = {
    path: number
    for number, name in enumerate(("stdin", "stdout", "stderr"))
    for path in (f"/dev/{name}", f"/dev/fd/{number}", f"/proc/self/fd/{number}")
}
"""Paths by which scripts open their own streams. A child reaches none of them behind its walls."""


def name_standard_streams() -> None:
    """Has `open` find the standard streams by their paths, which lead to no file here."""

    whole: Callable[..., Any] = io.open
    plain = os.open

    def number_of(file: Any) -> int | None:
        path = os.fspath(file) if isinstance(file, os.PathLike) else file
        return _DEVICES.get(path) if isinstance(path, str) else None

    def open(file: Any, *arguments: Any, **options: Any) -> Any:
        number = number_of(file)
        if number is None:
            return whole(file, *arguments, **options)
        return whole(number, *arguments, **{**options, "closefd": False})

    def open_descriptor(path: Any, *arguments: Any, **options: Any) -> int:
        number = number_of(path)
        return plain(path, *arguments, **options) if number is None else number

    builtins.open = io.open = open  # type: ignore[assignment]
    os.open = open_descriptor


def finish() -> Failure | None:
    """Does what the interpreter does after a script: joins threads, runs atexit, flushes output."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.__stdout__):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException as error:
        return exit_status(error)
    return None
