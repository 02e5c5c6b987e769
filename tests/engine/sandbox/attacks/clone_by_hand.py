# tries: to fork through the bare system call, by every name it has
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)
NUMBERS = {"x86_64": (57, 58, 56, 435), "aarch64": (220, 435)}[os.uname().machine]


def solve(x):
    for number in NUMBERS:
        if libc.syscall(number, 0, 0, 0, 0, 0) >= 0:
            return sorted(x)
    return None
