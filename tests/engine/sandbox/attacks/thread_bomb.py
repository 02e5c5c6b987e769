# tries: to fill the process table with threads
# path: call
# observed: runtime_error

import threading
import time

threading.stack_size(32 << 10)


def solve(x):
    count = 0
    while count < 1000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
    return sorted(x)
