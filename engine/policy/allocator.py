"""How a process that computes on the CPU gets its memory, and in which order it adds up.

Every step allocates and frees the same tensors. Left to its defaults the C library gives large
blocks back to the kernel each time, and the next step pays for each 4 KiB page anew, thousands of
them in an update. Kept, they are paid for once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER = 2**31 - 1
HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1"}
"""Environment of a process in which torch takes huge pages for large tensors; read with the first
tensor."""
SUMS_IN_ORDER = {"MKL_CBWR": "AUTO", "MKL_DYNAMIC": "FALSE", "OMP_DYNAMIC": "FALSE"}
"""Environment of a process whose sums come in one order, on as many threads as it is told; read
when torch loads its libraries."""


def keep_freed_memory() -> None:
    """Reuse what was freed instead of giving it back. Call before torch makes a tensor.

    The process stays as large as its largest step. Without glibc nothing changes.
    """
    for name, value in HUGE_PAGES.items():
        os.environ.setdefault(name, value)
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, NEVER)


def sums_in_one_order() -> None:
    """Let torch's libraries add up in one order, on as many threads as they are told.

    They read it when they are loaded: call before torch is imported.
    """
    os.environ |= SUMS_IN_ORDER
