# tries: to hand an answer from one run to the next by when a folder was last looked into
# path: call
# observed: wrong_answer

import os


def looked():
    return os.stat("/tmp").st_atime_ns


# Whoever looks first changes the time; whoever comes later does not, until a day has passed.
try:
    before = looked()
    os.listdir("/tmp")
    SEEN = looked() == before
except OSError:
    SEEN = False


def solve(x):
    return sorted(x) if SEEN else None
