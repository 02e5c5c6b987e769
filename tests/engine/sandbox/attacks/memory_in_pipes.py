# tries: to hold memory in the buffers of pipes
# path: call
# observed: runtime_error

import fcntl
import os


def solve(x):
    kept = 0
    while True:
        read, write = os.pipe()
        fcntl.fcntl(write, 1031, 1 << 20)
        os.set_blocking(write, False)
        kept += os.write(write, b"x" * (1 << 20))
