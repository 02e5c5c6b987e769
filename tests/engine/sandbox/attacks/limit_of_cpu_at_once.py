# tries: to be killed for its time before it has used any
# path: call
# observed: time_limit, killed, runtime_error

import resource


def solve(x):
    resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
    while True:
        pass
