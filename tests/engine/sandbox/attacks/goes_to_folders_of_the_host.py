# tries: to find out which folders the host has, by going there
# path: call
# observed: wrong_answer

import os


def solve(x):
    for folder in ("/etc", "/var", "/proc", "/sys", "/boot", "/run", "@FOLDER@"):
        try:
            os.chdir(folder)
            return sorted(x)
        except OSError:
            pass
    return None
