# tries: to announce more than it sends, so that the judge waits
# path: code
# observed: time_limit
# waits: yes

import os
import struct
import time


def solve(x):
    os.write(5, struct.pack("<IBI", 1, 0, 1000) + b"x")
    time.sleep(10**6)
