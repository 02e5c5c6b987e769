# tries: to wait for ever without using any CPU
# path: call
# observed: time_limit
# waits: yes

import time


def solve(x):
    time.sleep(10**6)
