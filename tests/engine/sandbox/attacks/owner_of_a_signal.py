# tries: to have the kernel signal another process when a file of its own becomes ready
# path: call
# observed: wrong_answer

import fcntl
import os


def solve(x):
    file = os.eventfd(0)
    owned = 0
    for pid in (os.getppid(), @OWNER@):
        try:
            fcntl.fcntl(file, fcntl.F_SETOWN, pid)
            owned = pid
        except OSError:
            continue
        try:
            fcntl.fcntl(file, fcntl.F_SETSIG, 9)
        except OSError:
            pass
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.eventfd_write(file, 1)
    return sorted(x) if owned else None
