# tries: to read the memory of the zygote and of its owner
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def solve(x):
    room = ctypes.create_string_buffer(64)
    here = Span(ctypes.addressof(room), 8)
    there = Span(id(room), 8)
    for pid in (os.getppid(), 1, @OWNER@):
        for call in (libc.process_vm_readv, libc.process_vm_writev):
            if call(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
                return sorted(x)
        try:
            open(f"/proc/{pid}/mem", "rb").read(1)
            return sorted(x)
        except OSError:
            pass
    return None
