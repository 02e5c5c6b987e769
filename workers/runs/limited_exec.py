"""Script that limits this process and then becomes a program: `python -I -S limited_exec.py LIMITS
COMMAND...`.

LIMITS is a JSON object with any of "memory_bytes", "cpu_seconds" and "file_bytes". Memory is what
the process may allocate (RLIMIT_DATA): neither a mapped file of any size nor shared memory nor
reserved addresses count. Every process that the program starts has the same limits.
"""

from __future__ import annotations

import json
import os
import resource
import sys


def main(limits: dict[str, int], command: list[str]) -> None:
    for name, what, spare in (
        ("memory_bytes", resource.RLIMIT_DATA, 0),
        ("cpu_seconds", resource.RLIMIT_CPU, 5),  # SIGXCPU, then SIGKILL
        ("file_bytes", resource.RLIMIT_FSIZE, 0),
    ):
        if name in limits:
            _set(what, limits[name], limits[name] + spare)
    _set(resource.RLIMIT_CORE, 0, 0)
    os.execvp(command[0], command)


def _set(what: int, soft: int, hard: int) -> None:
    _, highest = resource.getrlimit(what)
    if highest != resource.RLIM_INFINITY:
        soft, hard = min(soft, highest), min(hard, highest)
    resource.setrlimit(what, (soft, hard))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
