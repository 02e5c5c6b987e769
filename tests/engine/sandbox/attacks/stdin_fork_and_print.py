# tries: to have a child print after the script has ended
# path: stdin
# observed: runtime_error

import os
import time

if os.fork() == 0:
    time.sleep(0.5)
    os.write(1, b"1 2\n")
