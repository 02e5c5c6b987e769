# tries: to fill the result channel
# path: call
# observed: output_limit, runtime_error

import os


def solve(x):
    while True:
        os.write(3, b'x' * 60000)
