# tries: to rewind stdin and stdout and change what was written
# path: stdin
# observed: runtime_error, output_limit, wrong_answer

import os

os.write(1, b"x" * 100)
os.lseek(1, 0, 0)
os.ftruncate(1, 1 << 30)
