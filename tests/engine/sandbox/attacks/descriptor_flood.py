# tries: to open descriptors without end
# path: call
# observed: runtime_error

import os


def solve(x):
    kept = [os.dup(0) for _ in range(1000)]
    return sorted(x)
