"""Processes of the installation, as the database sees them: by the name of their connections.

Invariant: every web process and worker names its connections before the first one is opened
(`name_connections`), so that a process without one is none that can serve or take a run.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from webapp import __version__

_NAME = re.compile(r"grove (?P<kind>web|worker) (?P<version>\S+) (?P<pid>\d+)@(?P<host>.*)")
_LONGEST = 63
"""Bytes of a name that Postgres keeps."""
_ACTIVITY = """
    SELECT application_name, count(*), count(*) FILTER (WHERE state <> 'idle'), min(backend_start)
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
    GROUP BY application_name ORDER BY application_name
"""


@dataclass(frozen=True, slots=True)
class Process:
    kind: str
    """`web` or `worker`."""
    version: str
    host: str
    pid: int
    connections: int
    """Its connections to the database."""
    busy: int
    """Those that have a query or an open transaction."""
    since: datetime
    """Start of its oldest connection."""

    @property
    def is_current(self) -> bool:
        """Whether it is of this program's version."""
        return self.version == __version__


def name_connections(kind: str) -> None:
    """Names the connections that this process opens from now on, as libpq does by PGAPPNAME."""
    name = f"grove {kind} {__version__} {os.getpid()}@{socket.gethostname()}"
    os.environ["PGAPPNAME"] = name.encode("ascii", "replace").decode()[:_LONGEST]


def read_processes() -> tuple[list[Process], int]:
    """Reads the processes, and how many other connections the database has."""
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVITY)
        rows = cursor.fetchall()
    processes, others = [], 0
    for name, connections, busy, since in rows:
        if match := _NAME.fullmatch(name):
            kind, version, pid, host = match.group("kind", "version", "pid", "host")
            processes.append(Process(kind, version, host, int(pid), connections, busy, since))
        else:
            others += connections
    return processes, others
