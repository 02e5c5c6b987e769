# tries: to learn when a folder was mounted, and as which mount, from what only statx tells
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
STATX = {"x86_64": 332, "aarch64": 291}.get(os.uname().machine, 332)


def solve(x):
    found = (ctypes.c_uint64 * 32)()
    for path in (b"/", b"/tmp", b"/usr/lib", b"."):
        if libc.syscall(STATX, -100, path, 0, 0x5FFF, found) == 0:
            return sorted(x)
    return None
