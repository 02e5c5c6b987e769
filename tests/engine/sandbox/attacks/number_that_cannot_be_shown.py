# tries: to crash the service with a number that is too long, and too deep, to be shown
# path: call
# observed: runtime_error

import os
import struct

TEXT = b"[" * 120 + b"0x" + b"f" * 3800 + b"]" * 120


def solve(x):
    os.write(3, struct.pack("<IBI", 0, 0, len(TEXT)) + TEXT)
    os._exit(0)
