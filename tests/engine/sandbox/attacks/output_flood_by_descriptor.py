# tries: to write without end to the descriptors of stdout and stderr
# path: call
# observed: time_limit

import os


def solve(x):
    while True:
        os.write(1, b"x" * 60000)
        os.write(2, b"x" * 60000)
