# tries: to end by a timer, so that it looks like the service did it
# path: call
# observed: killed, time_limit

import signal
import time


def solve(x):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        time.sleep(60)
