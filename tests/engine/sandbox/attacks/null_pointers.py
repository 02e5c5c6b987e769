# tries: to crash the interpreter
# path: call
# observed: killed

import ctypes


def solve(x):
    ctypes.memset(0, 0, 1 << 20)
