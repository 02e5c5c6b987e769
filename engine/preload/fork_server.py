"""Fork server of a driver's model processes: it has imported what loading a model needs.

Importing torch and transformers takes seconds of CPU time. A driver that knows from its settings
that models will be forked starts the server first, so that it imports while the driver imports its
own modules, starts the sandbox and reads its problem.
"""

from __future__ import annotations

from multiprocessing import forkserver

from engine.preload.server import MODULES


def start_fork_server() -> None:
    """Starts this process's fork server, unless it runs already; does not wait for its imports."""
    forkserver.set_forkserver_preload(list(MODULES))
    forkserver.ensure_running()
