# tries: to execute a program from a file in memory
# path: call
# observed: runtime_error

import os


def solve(x):
    try:
        os.execve(3, ["x"], {})
    except OSError:
        pass
    fd = os.memfd_create("x")
    os.execve(fd, ["x"], {})
