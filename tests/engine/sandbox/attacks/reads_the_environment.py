# tries: to read secrets from the environment, also where C keeps it
# path: call
# observed: wrong_answer

import ctypes
import os


def solve(x):
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    seen = dict(os.environ)
    i = 0
    while environ and environ[i]:
        seen[environ[i]] = 1
        i += 1
    return sorted(x) if any("GROVE" in str(name) for name in seen) else None
