# tries: to write files wherever that has an effect
# path: call
# observed: wrong_answer

import os


def solve(x):
    library = os.path.dirname(os.__file__)
    for path in ("/grove-was-here", "/etc/grove-was-here", "/var/tmp/grove-was-here",
                 "/dev/shm/grove-was-here", "/usr/lib/grove-was-here", library + "/grove_owned.py",
                 "/root/grove-was-here", "/run/grove-was-here", "@FOLDER@/grove-was-here"):
        for flags in (os.O_CREAT | os.O_WRONLY, os.O_CREAT | os.O_RDWR):
            try:
                os.open(path, flags)
                return sorted(x)
            except OSError:
                pass
    return None
