# tries: to leave a tree behind that is hard to remove
# path: call
# observed: wrong_answer

import os


def solve(x):
    try:
        os.chdir("/tmp")
        for _ in range(200):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    except OSError:
        pass
    os.umask(0o777)
    try:
        os.mkdir("/tmp/closed", 0)
    except OSError:
        pass
    return None
