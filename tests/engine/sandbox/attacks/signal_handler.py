# tries: to answer from a signal handler in the middle of our code
# path: call
# observed: runtime_error

import os
import signal


def handler(number, frame):
    os._exit(0)


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)


def solve(x):
    while True:
        pass
