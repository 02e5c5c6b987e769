"""A full disk of the server: how it is known, and what is said of it."""

from __future__ import annotations

import errno

STATUS = 507
"""Insufficient Storage (RFC 4918, 11.5)."""
EXIT_STATUS = 28
"""Of a process that ends because the disk is full, as `errno.ENOSPC`."""
FULL = (
    "The server's disk is full. Nothing that was stored is lost: have whoever runs the server make "
    "room, then try again."
)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFull(OSError):
    """The disk is full, as a process of ours reports it."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSPC, FULL)

    def __str__(self) -> str:
        return FULL


def is_full(error: BaseException | None) -> bool:
    """Whether the error says that there is no room on a disk."""
    return isinstance(error, OSError) and error.errno in _FULL
