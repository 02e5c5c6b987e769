# tries: to read what an earlier job left in memory that malloc hands out again
# path: call
# observed: wrong_answer, killed

import ctypes

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def solve(x):
    needle = b"canary_of_an_earlier_progra"
    for size in [1 << n for n in range(5, 20)] * 8:
        address = libc.malloc(size)
        data = ctypes.string_at(address, size) if address else b""
        if data[data.find(needle) :].startswith(needle + bytes([109])):
            return sorted(x)
    return None
