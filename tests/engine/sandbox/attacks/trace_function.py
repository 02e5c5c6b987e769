# tries: to change our variables through a trace function
# path: call
# observed: runtime_error, wrong_answer

import sys


def tracer(frame, event, argument):
    for name in ("kind", "text", "value", "failure"):
        if name in frame.f_locals:
            frame.f_locals[name] = 0
    return tracer


sys.settrace(tracer)
sys.setprofile(tracer)


def solve(x):
    return None
