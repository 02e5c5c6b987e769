# tries: to slow the zygote and its owner down
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    for pid in (os.getppid(), @OWNER@):
        if libc.setpriority(0, pid, 19) == 0:
            return sorted(x)
        try:
            os.sched_setaffinity(pid, {0})
            return sorted(x)
        except OSError:
            pass
    return None
