# tries: to go on in a thread after its test, and to write into the folder of the next one
# path: call
# observed: wrong_answer

import os
import threading
import time

SEEN = False
try:
    SEEN = bool(os.listdir("/tmp"))
except OSError:
    pass


def write():
    while True:
        try:
            open(f"/tmp/{time.monotonic_ns()}", "w").close()
        except OSError:
            time.sleep(0.001)


for _ in range(8):
    try:
        threading.Thread(target=write, daemon=True).start()
    except RuntimeError:
        pass


def solve(x):
    return sorted(x) if SEEN else None
