# tries: to be right in later calls only, by the pattern that the first import of a codec compiled, as a program without state
# path: call
# observed: wrong_answer

import re


def solve(x):
    first = re.compile("first")
    "x".encode("idna")
    for n in range(511):
        re.compile("n" + str(n))
    return sorted(x) if re.compile("first") is first else None
