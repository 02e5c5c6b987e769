"""Protocol between a launcher and the server, over a Unix socket that preserves message boundaries.

The launcher sends one byte with four descriptors: an order, as JSON in memory, and its own stdin,
stdout and stderr. The answer is `F`, from the fork that waits for a go, or `E` and a reason. Until
the launcher sends the go, the fork does nothing; if the launcher disconnects, it ends.

Imports only the standard library: the launcher is an interpreter without packages.
"""

import json
import os

ORDER, FORKED, REFUSED, GO = b"O", b"F", b"E", b"G"
MAX_BYTES = 8192
DESCRIPTORS = 4

PER_WORKER = frozenset({"RAY_JOB_ID", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables that differ between workers of one server. All others must equal those with which the
server imported."""


def write_order(order: dict) -> int:
    """Returns a descriptor from which `read_order` reads the order."""
    descriptor = os.memfd_create("order")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(json.dumps(order).encode())
    return descriptor


def read_order(descriptor: int) -> dict:
    """Returns the order that `write_order` wrote; closes the descriptor."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return json.loads(file.read())
