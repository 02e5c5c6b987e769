"""Memory allocation and summation order of a process that computes on the CPU.

Every step allocates and frees the same tensors. By default the C library returns large blocks
to the kernel each time, and the next step faults in each 4 KiB page again, thousands of them in an
update. Blocks that are kept cost this once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER = 2**31 - 1
HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1"}
"""Environment of a process in which torch uses huge pages for large tensors; read at the first
tensor."""
SUMS_IN_ORDER = {"MKL_CBWR": "AUTO", "MKL_DYNAMIC": "FALSE", "OMP_DYNAMIC": "FALSE"}
"""Environment of a process with a fixed order of sums, on exactly the configured number of threads;
read when torch loads its libraries."""


def keep_freed_memory() -> None:
    """Keeps freed memory for reuse instead of returning it. Call before torch makes a tensor.

    The process stays as large as its largest step. Without glibc nothing changes.
    """
    for name, value in HUGE_PAGES.items():
        os.environ.setdefault(name, value)
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, NEVER)


def sums_in_one_order() -> None:
    """Makes torch's libraries sum in a fixed order, on exactly the configured number of threads.

    They read the setting when they are loaded: call before torch is imported.
    """
    os.environ |= SUMS_IN_ORDER
