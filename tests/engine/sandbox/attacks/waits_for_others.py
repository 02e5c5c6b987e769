# tries: to reap, or to wait on, processes that are not its own
# path: call
# observed: wrong_answer

import os


def solve(x):
    for pid in (-1, 0, 1, os.getppid()):
        try:
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                return sorted(x)
        except OSError:
            pass
    return None
