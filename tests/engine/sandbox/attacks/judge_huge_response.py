# tries: to announce a response of four gigabytes
# path: code
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

import os
import struct


def solve(x):
    os.write(5, struct.pack("<IBI", 1, 0, 0xFFFFFFFF))
    while True:
        os.write(5, b"x" * 4096)
