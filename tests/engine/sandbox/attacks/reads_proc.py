# tries: to read the environment, the memory and the descriptors of processes
# path: call
# observed: wrong_answer

import os


def solve(x):
    for pid in ("self", "thread-self", os.getppid(), 1, @OWNER@):
        for name in ("environ", "mem", "maps", "cmdline", "status", "fd", "root", "cwd", "exe"):
            path = f"/proc/{pid}/{name}"
            for look in (lambda: open(path, "rb").read(1), lambda: os.listdir(path)):
                try:
                    look()
                    return sorted(x)
                except OSError:
                    pass
    return None
