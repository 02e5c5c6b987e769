# tries: to leave something in memory that processes share
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    for path in ("/dev/shm/x", "/dev/mqueue/x", "/run/shm/x"):
        try:
            os.open(path, os.O_CREAT | os.O_RDWR)
            return sorted(x)
        except OSError:
            pass
    for made in (
        libc.shmget(1, 4096, 0o1777), libc.semget(1, 1, 0o1777), libc.msgget(1, 0o1777),
        libc.syscall(240 if os.uname().machine == "x86_64" else 180, b"x", 0o102, 0o777, 0),
    ):
        if made >= 0:
            return sorted(x)
    return None
