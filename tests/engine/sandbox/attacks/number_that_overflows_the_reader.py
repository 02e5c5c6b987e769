# tries: to crash the service with a number that its reader cannot add
# path: call
# observed: runtime_error

import os
import struct

TEXT = b"0x" + b"f" * 400 + b"+1j"


def solve(x):
    os.write(3, struct.pack("<IBI", 0, 0, len(TEXT)) + TEXT)
    os._exit(0)
