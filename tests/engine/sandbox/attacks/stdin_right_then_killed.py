# tries: to print the right answer and then crash
# path: stdin
# observed: killed

import ctypes

print(*sorted(map(int, input().split())), flush=True)
ctypes.string_at(0)
