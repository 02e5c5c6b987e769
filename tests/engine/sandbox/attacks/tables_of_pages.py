# tries: to take memory that no limit counts: the tables of pages that lie far apart
# path: call
# observed: memory_limit, time_limit, runtime_error

import ctypes

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


def solve(x):
    for place in range(1, 1 << 20):
        address = libc.mmap(0x100000000000 + (place << 30), 4096, 3, 0x100022, -1, 0)
        if address == (1 << 64) - 1:
            raise MemoryError
        ctypes.memset(address, 1, 1)
