# tries: to write a frame of success where failures are reported, and fail
# path: stdin
# observed: wrong_answer, runtime_error

import os
import struct

os.write(3, struct.pack("<IBI", 0, 0, 3) + b"'1'")
print("2 1")
