# tries: to be right in later calls only, by the room of a warning about a pattern that is not kept, as a program without state
# path: call
# observed: wrong_answer, output_limit

import re


def solve(x):
    re.compile("[[a]", 128)  # re.DEBUG, for which no pattern is kept
    if len(x) == 2 and x[0] == 2:
        return None
    print("x" * 3850)
    return sorted(x)
