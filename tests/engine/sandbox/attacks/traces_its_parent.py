# tries: to trace the zygote, or have itself traced
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    for request, pid in ((16, os.getppid()), (0x4206, os.getppid()), (16, 1), (0, 0), (16, @OWNER@)):
        if libc.ptrace(request, pid, 0, 0) == 0:
            return sorted(x)
    return None
