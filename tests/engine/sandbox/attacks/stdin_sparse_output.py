# tries: to claim an output far larger than what was written
# path: stdin
# observed: output_limit, runtime_error, wrong_answer

import os

os.lseek(1, 1 << 40, os.SEEK_SET)
try:
    os.write(1, b"x")
except OSError:
    pass
try:
    os.ftruncate(1, 4097)
except OSError:
    os.ftruncate(1, 4096)
