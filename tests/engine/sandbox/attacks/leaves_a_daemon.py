# tries: to leave a process behind that outlives the run
# path: call
# observed: runtime_error

import os


def solve(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                pass
    return sorted(x)
