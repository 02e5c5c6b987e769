# tries: to read from their processor clocks which other processes there are, and how busy
# path: call
# observed: wrong_answer

import os
import time


def solve(x):
    near = range(@OWNER@ - 20, @OWNER@ + 20)
    for pid in {os.getppid(), *range(1, 100), *near} - {0, os.getpid()}:
        for kind in (0, 1, 2):
            try:
                time.clock_gettime((~pid << 3) | kind)
                return sorted(x)
            except OSError:
                pass
    return None
