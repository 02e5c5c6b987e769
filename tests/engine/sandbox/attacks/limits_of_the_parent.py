# tries: to set the limits of another process
# path: call
# observed: wrong_answer

import os
import resource


def solve(x):
    for pid in (1, os.getppid(), @OWNER@):
        try:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))
            return sorted(x)
        except OSError:
            pass
    return None
