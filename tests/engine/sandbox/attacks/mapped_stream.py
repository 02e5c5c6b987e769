# tries: to write the result channel through a memory map and lie about its length
# path: call
# observed: runtime_error

import mmap
import os


def solve(x):
    os.ftruncate(3, 4096)
    view = mmap.mmap(3, 4096)
    view[:] = b"\xff" * 4096
    return None
