# tries: to put another file in the place of the result channel
# path: call
# observed: runtime_error

import os

os.dup2(os.eventfd(0), 3)


def solve(x):
    return sorted(x)
