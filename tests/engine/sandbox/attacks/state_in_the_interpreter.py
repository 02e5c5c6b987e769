# tries: to leave a note for the next run in modules that all children share
# path: call
# observed: wrong_answer

import json
import math
import sys

SEEN = any(hasattr(module, "grove_note") for module in (json, math, sys))
json.grove_note = math.grove_note = sys.grove_note = True


def solve(x):
    return sorted(x) if SEEN else None
