# tries: to read the job, or another file, through a descriptor that was left open
# path: call
# observed: wrong_answer

import os


def solve(x):
    for fd in range(4, 1024):
        try:
            os.fstat(fd)
            return sorted(x)
        except OSError:
            pass
    return None
