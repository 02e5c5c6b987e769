"""Full disk of the server: detection and message."""

from __future__ import annotations

import errno

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
