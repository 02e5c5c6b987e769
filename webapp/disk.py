"""Failures of the disks of the server, as users see them: what failed, not where."""

from __future__ import annotations

import errno
import os
from pathlib import Path

STATUS = 507
"""Insufficient Storage (RFC 4918, 11.5)."""
EXIT_STATUS = 28
"""Exit status of a process that ends because the disk is full, as `errno.ENOSPC`."""
FULL = (
    "The server's disk is full. Nothing that was stored is lost: have the server's operator free "
    "space, then try again."
)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFull(OSError):
    """Raised if a process of ours reports a full disk."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, FULL)

    def __str__(self) -> str:
        return FULL


def is_full(error: BaseException | None) -> bool:
    """Whether the error means that no space is left on a disk."""
    return isinstance(error, OSError) and error.errno in _FULL


def cause_of(error: Exception) -> str:
    """Returns the cause for a user: of a file, its name and the reason, not its path."""
    if is_full(error):
        return FULL
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if error.filename is None or isinstance(error.filename, int):  # no file, or a descriptor
        return error.strerror
    return f"{Path(os.fsdecode(error.filename)).name}: {error.strerror}"
