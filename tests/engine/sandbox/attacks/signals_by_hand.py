# tries: to send signals through every system call that can
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": (62, 200, 129, 424), "aarch64": (129, 130, 138, 424)}[os.uname().machine]


def solve(x):
    for number in NUMBERS:
        for pid in (os.getppid(), 1, @OWNER@):
            if libc.syscall(number, pid, 0, 0) == 0:
                return sorted(x)
    return None
