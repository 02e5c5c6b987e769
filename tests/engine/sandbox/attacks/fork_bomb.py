# tries: to fill the process table
# path: call
# observed: runtime_error

import os


def solve(x):
    while True:
        os.fork()
