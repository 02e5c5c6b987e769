# tries: to make the service choke on text that looks like a literal
# path: call
# observed: runtime_error

import os
import struct

TEXT = b"'" + b"\\" * 3001 + b"'" + b"\0\xff\\N{x}"


def solve(x):
    os.write(3, struct.pack("<IBI", 0, 0, len(TEXT)) + TEXT)
    os._exit(0)
