"""File permissions: what Grove writes is readable by its own account alone.

Every process calls `keep_private` first. Invariant: only the owner can enter GROVE_VAR (mode 0700),
and what a process of ours, or a child of one, writes anywhere is readable by its owner only (umask
077). Directories of earlier versions, which were open to all, are closed at the next start; in them
only what Grove itself writes is changed, never what people put there, nor anything behind a
symbolic link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

UMASK = 0o077
WRITTEN = (
    "artifact-copies", "artifacts", "broker", "exports", "logs", "model-versions", "runs",
    "uploads",
)  # fmt: skip
"""Folders in GROVE_VAR that Grove itself fills."""


class SharedDirectory(ValueError):
    """Raised for a directory that all accounts may write to, which cannot be private."""


def keep_private(var: Path) -> None:
    """Creates `var` if it is missing and closes it; new files are readable by the owner alone.

    Leaves a directory as it is if it belongs to another account or is on a read-only disk
    (`webapp.config.checks` warns of it).

    Raises:
        SharedDirectory: `var` is one like /tmp.
    """
    os.umask(UMASK)
    with suppress(OSError):
        var.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = var.stat()
        if status.st_mode & stat.S_ISVTX:
            raise SharedDirectory
        if status.st_uid == os.geteuid() and status.st_mode & UMASK:
            _close(var)


def is_private(var: Path) -> bool:
    """Whether only its owner can enter it."""
    return not var.stat().st_mode & UMASK


def _close(var: Path) -> None:
    for path in _written(var):
        with suppress(OSError):  # gone meanwhile, or another account's
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & UMASK:
                path.chmod(stat.S_IMODE(mode) & ~UMASK)
    var.chmod(0o700)  # last: it marks that all is done


def _written(var: Path) -> Iterator[Path]:
    with os.scandir(var) as entries:
        yield from (Path(entry) for entry in entries if entry.is_file(follow_symlinks=False))
    for name in WRITTEN:
        for folder, _, names in os.walk(var / name):
            yield Path(folder)
            yield from (Path(folder, one) for one in names)
