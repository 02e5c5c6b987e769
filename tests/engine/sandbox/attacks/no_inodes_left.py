# tries: to use up the names of the writable folder while it is emptied
# path: call
# observed: wrong_answer

import os
import threading


def make():
    number = 0
    while True:
        number += 1
        try:
            os.mkdir(f"/tmp/{number}", 0)
        except OSError:
            number = 0


def solve(x):
    for _ in range(8):
        try:
            threading.Thread(target=make, daemon=True).start()
        except RuntimeError:
            pass
    return None
