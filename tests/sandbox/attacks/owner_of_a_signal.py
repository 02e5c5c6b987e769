# tries: to have the kernel signal another process when a pipe becomes ready
# path: call
# observed: wrong_answer

import fcntl
import os


def solve(x):
    read, write = os.pipe()
    owned = 0
    for pid in (os.getppid(), @OWNER@):
        try:
            fcntl.fcntl(read, fcntl.F_SETOWN, pid)
            owned = pid
        except OSError:
            continue
        try:
            fcntl.fcntl(read, fcntl.F_SETSIG, 9)
        except OSError:
            pass
        fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(write, b"x")
    return sorted(x) if owned else None
