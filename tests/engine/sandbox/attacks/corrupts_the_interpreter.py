# tries: to overwrite the interpreter's own objects and go on
# path: call
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

import ctypes


def solve(x):
    for name in (int, list, type(None)):
        ctypes.memset(id(name), 0x41, 64)
    return None
