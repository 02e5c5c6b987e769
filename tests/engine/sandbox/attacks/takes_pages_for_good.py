# tries: to lock memory, and to take the machine's large pages
# path: call
# observed: wrong_answer

import ctypes
import mmap

libc = ctypes.CDLL(None)


def solve(x):
    if libc.mlockall(1) == 0:
        return sorted(x)
    for flag in (0x40000, 0x2000):  # MAP_HUGETLB, MAP_LOCKED
        try:
            mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flag)
            return sorted(x)
        except OSError:
            pass
    return None
