# tries: to take a descriptor out of another process
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    for pid in (os.getppid(), 1, @OWNER@):
        fd = libc.syscall(434, pid, 0)
        if fd >= 0 and libc.syscall(438, fd, 3, 0) >= 0:
            return sorted(x)
    return None
