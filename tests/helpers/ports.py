"""Ports of the loopback interface for servers that are told one.

A server that can choose its own port gets 0 and reports it. The others, and those that restart on
the same port, get one from here.
"""

from __future__ import annotations

import re
import socket
import subprocess

_held: list[socket.socket] = []


def a_port() -> int:
    """Returns a port that nothing else gets while this process runs.

    It stays bound, to a socket that never listens. Linux gives it to no one who asks for any port,
    and lets a server that sets SO_REUSEADDR, as all do, listen on it, and again after a restart.
    Until then, connections are refused.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _held.append(held)
    return held.getsockname()[1]


def port_of(web: subprocess.Popen[bytes]) -> int:
    """Returns the port on which a `serve_web --port 0` with a piped output says that it listens."""
    assert web.stdout is not None
    line = web.stdout.readline().decode()
    said = re.fullmatch(r"Listening on http://\S+:(\d+)\n", line)
    assert said, f"it said {line!r}"
    return int(said[1])
