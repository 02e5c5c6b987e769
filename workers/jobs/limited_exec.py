"""Script that limits this process and then becomes a program: `python -I -S limited_exec.py LIMITS
COMMAND...`.

LIMITS is a JSON object {"memory_bytes", "cpu_seconds", "file_bytes"}. Memory is what the process
may allocate (RLIMIT_DATA): a mapped file of any size does not count. Every process that the program
starts has the same limits.
"""

from __future__ import annotations

import json
import os
import resource
import sys


def main(limits: dict[str, int], command: list[str]) -> None:
    seconds = limits["cpu_seconds"]
    for what, soft, hard in (
        (resource.RLIMIT_DATA, limits["memory_bytes"], limits["memory_bytes"]),
        (resource.RLIMIT_CPU, seconds, seconds + 5),  # SIGXCPU, then SIGKILL
        (resource.RLIMIT_FSIZE, limits["file_bytes"], limits["file_bytes"]),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, highest = resource.getrlimit(what)
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        resource.setrlimit(what, (soft, hard))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
