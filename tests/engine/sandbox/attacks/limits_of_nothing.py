# tries: to leave itself no means to report, so that the failure looks technical
# path: call
# observed: runtime_error, memory_limit, killed, output_limit, time_limit

import resource

NAMES = ("RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_STACK", "RLIMIT_DATA")


def solve(x):
    for name in NAMES:
        resource.setrlimit(getattr(resource, name), (0, 0))
    return sorted(x)
