# tries: to have many tables of descriptors, each filled with files
# path: call
# observed: wrong_answer, runtime_error, killed, time_limit, memory_limit

import ctypes
import os
import threading

UNSHARE_FILES, UNSHARE = 0x400, {"x86_64": 272, "aarch64": 97}[os.uname().machine]
LIBC = ctypes.CDLL(None)


def fill():
    LIBC.syscall(UNSHARE, UNSHARE_FILES)
    LIBC.close_range(900, 1000, 2)
    while True:
        try:
            os.eventfd(0)
        except OSError:
            pass


def solve(x):
    for _ in range(12):
        threading.Thread(target=fill, daemon=True).start()
    return None
