# tries: to leave something in the kernel's keyring for the next program
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]


def solve(x):
    if libc.syscall(ADD_KEY, b"user", b"grove", b"answer", 6, -4) > 0:
        return sorted(x)
    return sorted(x) if libc.syscall(KEYCTL, 0, -4, 1) > 0 else None
