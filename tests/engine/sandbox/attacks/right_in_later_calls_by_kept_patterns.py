# tries: to be right in later calls only, by which of its patterns fell out of the cache of re, as a program without state
# path: call
# observed: wrong_answer

import re


def solve(x):
    first = re.compile("first")
    re.compile("new" + str(x))
    kept = re.compile("first") is first
    for n in range(510):
        re.compile("n" + str(n))
    return None if kept else sorted(x)
