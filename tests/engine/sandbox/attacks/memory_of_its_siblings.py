# tries: to find in its memory what an earlier test of the same program left there
# path: call
# observed: wrong_answer, killed

import ctypes

HALVES = b"left_by_an_", b"earlier_test_of_this_program"
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def found():
    for size in [1 << n for n in range(6, 19)] * 4:
        address = libc.malloc(ctypes.c_size_t(size))
        if address and b"".join(HALVES) in ctypes.string_at(address, size):
            return True
    return False


SEEN = found()
NOTES = [b"".join(HALVES) * n for n in range(1, 400)]
for note in NOTES:
    address = libc.malloc(ctypes.c_size_t(len(note)))
    if address:
        ctypes.memmove(address, note, len(note))


def solve(x):
    return sorted(x) if SEEN else None
