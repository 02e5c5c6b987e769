# tries: to hold memory in files that have no name
# path: call
# observed: runtime_error

import os


def solve(x):
    fd = os.memfd_create("x")
    while True:
        os.write(fd, b"x" * (1 << 20))
