# tries: to undo what we set for its process: dumps, death signal, filters
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    for option, value in ((4, 1), (1, 0), (38, 0), (22, 0), (22, 1), (35, 1), (36, 1), (23, 0)):
        if libc.prctl(option, value, 0, 0, 0) == 0:
            return sorted(x)
    return None
