# tries: to end or stop the process that forks the next test's child, its siblings and itself
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
ME = os.getpid()
TARGETS = [os.getppid(), *range(ME - 3, ME), *range(ME + 1, ME + 4), 0, -1, -os.getpgrp()]


def reached():
    yield from (libc.kill(target, number) == 0 for target in TARGETS for number in (0, 19, 9))
    yield from (libc.syscall(434, target, 0) >= 0 for target in TARGETS[:3])  # pidfd_open
    yield from (libc.syscall(200, target, 9) == 0 for target in TARGETS[:3])  # tkill
    yield libc.prctl(1, 9, 0, 0, 0) == 0  # to die with its parent
    yield libc.prctl(4, 1, 0, 0, 0) == 0  # to be traced
    yield libc.setpriority(0, os.getppid(), 19) == 0
    yield libc.syscall(56, 0x1200011, 0, 0, 0, 0) > 0  # a fork as C libraries do it
    yield libc.syscall(56, 17, 0, 0, 0, 0) > 0


def solve(x):
    return sorted(x) if any(list(reached())) else None
