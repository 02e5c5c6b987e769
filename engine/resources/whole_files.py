"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing; under its name it appears when the block has ended, and not if that
    raised. A symbolic link stays one: its target is written. What is no plain file, such as a FIFO,
    a device or /dev/stdout, is written through.

    Raises:
        OSError: it cannot be written; names the file.
    """
    if _is_written_through(path):
        with path.open("wb") as file:
            yield file
        return
    target = _target(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        opened = draft.open("xb")
    except OSError as error:
        raise _named(error.errno, path) from None
    try:
        with opened as file:
            yield file
        draft.replace(target)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # of a write, without a name
            raise _named(error.errno, path) from None
        raise
    finally:
        draft.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raises `OSError` if `whole_file` could not write there. Makes the folder, and an empty file
    if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not _is_written_through(path):
        with path.open("a"):
            return
    if not os.access(path, os.W_OK):  # opening a FIFO would end its reader
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def save_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes an object as JSON, as `whole_file` does. Raises as it does."""
    with whole_file(path) as file:
        file.write((json.dumps(data, indent=1) + "\n").encode())


def _target(path: Path) -> Path:
    """Returns the file that a path leads to. Raises `OSError`: it can be none."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise _named(errno.ELOOP, path)
    if target.is_dir():
        raise _named(errno.EISDIR, path)
    return target


def _named(number: int | None, path: Path) -> OSError:
    """Returns an error that names the file, and not its draft."""
    return OSError(number, os.strerror(number or errno.EIO), str(path))


def _is_written_through(path: Path) -> bool:
    # /dev/stdout may be a plain file, which another program has open.
    if path.absolute().is_relative_to("/dev") or path.absolute().is_relative_to("/proc"):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
    except OSError:
        return False
