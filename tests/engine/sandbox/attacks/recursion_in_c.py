# tries: to overflow the stack of the interpreter itself
# path: call
# observed: runtime_error, killed, time_limit, memory_limit, output_limit, wrong_answer

import sys

sys.setrecursionlimit(10**9)


class Deep:
    def __repr__(self):
        return str([self])


def solve(x):
    return repr(Deep())
