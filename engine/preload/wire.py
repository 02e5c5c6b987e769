"""What a launcher and the server say to each other, over a Unix socket that keeps messages apart.

The launcher sends one byte with four descriptors: an order, as JSON in memory, and its own stdin,
stdout and stderr. The answer is `F`, from the fork that waits for a go, or `E` and a reason. Until
the launcher has said go, the fork does nothing; if the launcher has gone away, it ends.

Imports only what an interpreter without packages has: the launcher is one.
"""

import json
import os

ORDER, FORKED, REFUSED, GO = b"O", b"F", b"E", b"G"
MOST_BYTES = 8192
DESCRIPTORS = 4

PER_WORKER = frozenset({"RAY_JOB_ID", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables that are another worker's business. The rest of a worker's environment is that in which
its server imported, or it is not its server."""


def written(order: dict) -> int:
    """A descriptor from which `read` takes the order."""
    descriptor = os.memfd_create("order")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(json.dumps(order).encode())
    return descriptor


def read(descriptor: int) -> dict:
    """What `written` wrote; closes the descriptor."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return json.loads(file.read())
