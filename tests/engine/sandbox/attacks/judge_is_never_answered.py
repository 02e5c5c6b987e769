# tries: to take the call and never answer
# path: code
# observed: time_limit
# waits: yes

import time


def solve(x):
    time.sleep(10**6)
