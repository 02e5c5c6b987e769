# tries: to wait where no signal of Python's own reaches
# path: call
# observed: time_limit
# waits: yes

import ctypes
import signal

LIBC = ctypes.CDLL(None)


def solve(x):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    while True:
        LIBC.pause()
        LIBC.sleep(1000)
