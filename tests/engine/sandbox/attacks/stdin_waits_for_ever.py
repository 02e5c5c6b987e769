# tries: to wait for input that never comes
# path: stdin
# observed: time_limit
# waits: yes

import time

try:
    input()
    input()
except EOFError:
    time.sleep(10**6)
