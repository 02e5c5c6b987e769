# tries: to print the right answer and then never end
# path: stdin
# observed: time_limit

import os

print(*sorted(map(int, input().split())), flush=True)
while True:
    os.getpid()
