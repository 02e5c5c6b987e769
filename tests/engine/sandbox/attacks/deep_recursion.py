# tries: to overflow the stack with the limit of the interpreter raised
# path: call
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

import sys

sys.setrecursionlimit(10**9)


def solve(x):
    return solve(x)
