# tries: to hand an answer from one run to the next through a file
# path: call
# observed: wrong_answer

import os

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/run")
SEEN = any(os.path.exists(folder + "/notes") for folder in FOLDERS)
for folder in FOLDERS:
    try:
        open(folder + "/notes", "w").write("been here")
    except OSError:
        pass


def solve(x):
    return sorted(x) if SEEN else None
