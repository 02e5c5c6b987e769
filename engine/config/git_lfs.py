"""Pointers of git-lfs: small texts that stand for files which were not fetched
(https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md)."""

from __future__ import annotations

from pathlib import Path

WHAT = "a pointer of git-lfs, not the file itself"
REMEDY = "fetch the file with `git lfs pull`, or download it, and try again"
_STARTS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")
START_BYTES = max(map(len, _STARTS))
"""Bytes of a file that show whether it is a pointer."""


def is_pointer(start: bytes) -> bool:
    """Returns whether a file that begins so is a pointer."""
    return start.startswith(_STARTS)


def is_pointer_file(file: Path) -> bool:
    """Returns whether a file is a pointer; False if it cannot be read."""
    try:
        with file.open("rb") as content:
            return is_pointer(content.read(START_BYTES))
    except OSError:
        return False
