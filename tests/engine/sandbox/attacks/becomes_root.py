# tries: to change who it is
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None)


def solve(x):
    before = os.getresuid()
    for uid in (0, 1, 65534, 1000):
        for change in (os.setuid, os.setgid, os.seteuid, os.setegid):
            try:
                change(uid)
            except OSError:
                continue
            if os.getresuid() != before:
                return sorted(x)
    try:
        os.setgroups([0])
        return sorted(x)
    except OSError:
        return None
