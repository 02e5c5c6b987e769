# tries: to crash at exit after it has printed the answer
# path: stdin
# observed: runtime_error

import atexit
import os

print(*sorted(map(int, input().split())), flush=True)
atexit.register(os._exit, 3)
