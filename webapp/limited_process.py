"""Processes with resource limits, which read files of strangers: `python -m MODULE < JOB`.

Invariant: the waiting process holds nothing of a file but the job's output, which the job bounds.
JOB is a JSON object with "seconds", "memory_bytes" and "most_bytes" (of one written file), limits
that the process sets for itself (`limit_self`) before it opens a file; the rest is up to the
module.

Waits: for the process (its seconds), never for a free slot.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webapp.disk import EXIT_STATUS, DiskFull, is_full

_HERE = Path(__file__).resolve().parents[1]


def run_limited(module: str, job: dict[str, Any]) -> bool:
    """Whether the module ended by itself, with exit status 0, within the job's limits.

    Raises:
        DiskFull: it could not write its result.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=_HERE,
        env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.communicate(json.dumps(job).encode(), timeout=job["seconds"])
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode == EXIT_STATUS:
        raise DiskFull
    return process.returncode == 0


def exit_status_of(main: Callable[[], int]) -> int:
    """The exit status of a module: what its `main` returns, or `EXIT_STATUS` for a full disk."""
    try:
        return main()
    except OSError as error:
        if is_full(error):
            return EXIT_STATUS
        raise


def limit_self(job: dict[str, Any]) -> None:
    """Sets the job's limits for this process; the module calls it first."""
    for what, most in (
        (resource.RLIMIT_AS, job["memory_bytes"]),
        (resource.RLIMIT_CPU, int(job["seconds"])),
        (resource.RLIMIT_FSIZE, job["most_bytes"]),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of `webapp.projects.turns` for such processes."""

    name: str
    lock: int
    """First key of the advisory locks of its slots; the next three numbers are those of its
    workspaces, people and places."""
    slots: int


@contextmanager
def free_slot(lock: int, slots: int) -> Iterator[bool]:
    """Whether one of so many slots of all web processes was free; it is held until the block ends,
    or this process does."""
    from django.db import connection, transaction  # the module's process has no Django

    with transaction.atomic(), connection.cursor() as cursor:
        for slot in range(slots):
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [lock, slot])
            if cursor.fetchone()[0]:
                yield True
                return
        yield False
