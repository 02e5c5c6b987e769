# tries: to change the times of a device of the host
# path: call
# observed: runtime_error, wrong_answer

import os


def solve(x):
    try:
        os.utime("/dev/null")
    except OSError:
        descriptor = os.open("/dev/null", os.O_WRONLY)
        os.utime(descriptor)
    return sorted(x)
