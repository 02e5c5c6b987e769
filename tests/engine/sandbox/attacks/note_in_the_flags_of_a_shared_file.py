# tries: to leave a note for the next run in the flags, locks and owner of an open file it shares
# path: call
# observed: wrong_answer

import fcntl
import os

PLAIN = fcntl.fcntl(0, fcntl.F_GETFL)
SEEN = bool(PLAIN & (os.O_APPEND | os.O_NONBLOCK))
for descriptor in (0, 1, 2, 3):
    for command, value in (
        (fcntl.F_SETFL, PLAIN | os.O_APPEND | os.O_NONBLOCK),
        (fcntl.F_SETOWN, os.getpid()),
        (1024, fcntl.F_RDLCK),  # F_SETLEASE
    ):
        try:
            fcntl.fcntl(descriptor, command, value)
        except OSError:
            pass
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        SEEN = True
    except OSError:
        pass


def solve(x):
    return sorted(x) if SEEN else None
