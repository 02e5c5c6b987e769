# tries: to find out which other processes there are by asking for their group, session and cores
# path: call
# observed: wrong_answer

import os


def solve(x):
    for pid in {os.getppid(), *range(1, 100), @OWNER@} - {0, os.getpid()}:
        for ask in (os.getpgid, os.getsid, os.sched_getaffinity):
            try:
                ask(pid)
                return sorted(x)
            except OSError:
                pass
    return None
