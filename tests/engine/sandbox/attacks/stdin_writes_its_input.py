# tries: to find an answer, or a name to open, behind the descriptor of its input
# path: stdin
# observed: wrong_answer

import os

os.lseek(0, 0, 2)
try:
    os.write(0, b"more")
except OSError:
    pass
print(os.pread(0, 10**6, 0)[:0].decode(), os.fstat(0).st_size > 10**6)
