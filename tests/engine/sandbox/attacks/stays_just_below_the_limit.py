# tries: to hold a slot as long as it can without breaking a limit
# path: call
# observed: wrong_answer, time_limit
# waits: yes

import time


def solve(x):
    time.sleep(1.2)
