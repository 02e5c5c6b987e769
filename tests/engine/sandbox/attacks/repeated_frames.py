# tries: to answer one call twice, hoping that the better answer counts
# path: call
# observed: runtime_error

import os
import struct


def solve(x):
    text = repr(sorted(x)).encode()
    os.write(3, struct.pack("<IBI", 0, 0, len(text)) + text)
    return None
