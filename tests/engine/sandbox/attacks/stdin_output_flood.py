# tries: to print without end, past the buffers of Python
# path: stdin
# observed: output_limit, runtime_error

import os

while True:
    os.write(1, b'1 2\n' * 10000)
