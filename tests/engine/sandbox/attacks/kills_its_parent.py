# tries: to kill the zygote, and everybody else
# path: call
# observed: runtime_error

import os


def solve(x):
    for pid in (os.getppid(), 1, -1, 0, @OWNER@):
        try:
            os.kill(pid, 9)
            return sorted(x)
        except OSError:
            pass
    os.killpg(0, 9)
    return sorted(x)
