# tries: to keep the service busy with the longest frames that are allowed
# path: call
# observed: runtime_error

import os
import struct

TEXT = b"[" + b"1," * 8000 + b"]"


def solve(x):
    for index in range(3):
        os.write(3, struct.pack("<IBI", index, 0, len(TEXT)) + TEXT)
    os._exit(0)
