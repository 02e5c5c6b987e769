# tries: to hide from the next test that it left a file, by setting back its folder's times
# path: call
# observed: wrong_answer

import os

SEEN = os.path.exists("/tmp/notes")
try:
    open("/tmp/notes", "w").close()
    os.utime("/tmp", (0, 0))
except OSError:
    pass


def solve(x):
    return sorted(x) if SEEN else None
