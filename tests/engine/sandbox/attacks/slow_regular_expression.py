# tries: to spend its time inside the regular expression engine
# path: call
# observed: time_limit

import re


def solve(x):
    return re.match('(a+)+$', 'a' * 64 + 'b')
