# tries: to block the signals that would end it
# path: call
# observed: time_limit

import signal

signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))


def solve(x):
    while True:
        pass
