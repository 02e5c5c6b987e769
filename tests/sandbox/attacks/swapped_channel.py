# tries: to put another file in the place of the result channel
# path: call
# observed: runtime_error

import os

read, write = os.pipe()
os.dup2(write, 3)


def solve(x):
    return sorted(x)
