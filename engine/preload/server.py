"""Server process that has imported what an actor with a model needs, and forks Ray workers.

Run by path with a listening socket as descriptor 3 and its raylet, as a pidfd, as 4; started by
the first launcher (launcher.py).

Invariants:
- It forks only while it has one thread, has initialised no GPU, and has not loaded Ray, which reads
  the worker's job when it is loaded: it has no state that a fork cannot carry over. If that does
  not hold, or an import failed, it refuses every request with the reason.
- It ends with its raylet. Its forks do not depend on it.
- A fork has the launcher's environment, directory, descriptors and process group, its own random
  numbers, and nothing of the server's.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTENER, RAYLET = 3, 4
MODULES = (
    "torch",
    "transformers",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "engine.policy.host",
    "engine.policy.generators.torch_generator",
    "engine.environments",
    "engine.training.actors",
)
"""Imports of an actor with a model; some of them happen only when it loads the model."""


def main() -> None:
    if connection := serve_forks(import_modules()):
        run_as_worker(connection)


def import_modules() -> str:
    """Imports all modules; returns why nothing can be forked, or an empty string."""
    sys.path[0] = str(ROOT)
    try:
        for name in MODULES:
            importlib.import_module(name)
        if "ray" in sys.modules:
            return "an import has loaded ray, which would keep this process's job for all forks"
        threads = os.listdir("/proc/self/task")  # noqa: PTH208
        if len(threads) > 1:
            return f"an import has started threads: there are {len(threads)}"
        if sys.modules["torch"].cuda.is_initialized():
            return "an import has initialised CUDA"
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    # The collector would write to, and so copy, memory that all forks share.
    gc.collect()
    gc.freeze()
    return ""


def serve_forks(failed: str) -> socket.socket | None:
    """Forks for each connection until the raylet ends; returns, in a fork, the connection to its
    launcher."""
    inherited = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    listener = socket.socket(fileno=LISTENER)
    events = select.poll()
    events.register(LISTENER, select.POLLIN)
    events.register(RAYLET, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in events.poll()}
        if RAYLET in ready:
            return None
        connection, _ = listener.accept()
        if failed:
            refuse(connection, failed)
        elif os.fork() == 0:
            signal.signal(signal.SIGCHLD, inherited)
            listener.close()
            os.close(RAYLET)
            return connection
        connection.close()


def refuse(connection: socket.socket, reason: str) -> None:
    """Sends a launcher the refusal of its request."""
    from engine.preload.wire import MAX_BYTES, REFUSED

    with contextlib.suppress(OSError):
        connection.settimeout(answer_seconds())
        connection.recv(MAX_BYTES)  # closing with unread data would discard the answer
        connection.send((REFUSED + reason.encode())[:MAX_BYTES])


def answer_seconds() -> float:
    """Returns the deadline for a launcher's order, and then for its go."""
    from engine.config.deadlines import PRELOAD_ANSWER

    return PRELOAD_ANSWER.seconds


def run_as_worker(connection: socket.socket) -> None:
    """Continues as the worker of the launcher at the other end."""
    try:
        arguments = adopt_launcher_environment(connection)
    except TimeoutError:
        arguments = None
        refuse_late(connection)
    except OSError:
        arguments = None
    if arguments is None:
        os._exit(1)  # the launcher stopped waiting, and is the worker itself
    sys.argv = arguments
    sys.path[sys.path.index(str(ROOT))] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


def refuse_late(connection: socket.socket) -> None:
    """Reports to a launcher, and in the log, that its message did not come in time."""
    from engine.config.deadlines import PRELOAD_ANSWER
    from engine.preload.wire import REFUSED

    reason = (
        f"no word of the launcher within {connection.gettimeout():g} s; {PRELOAD_ANSWER.remedy}"
    )
    print(reason, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError):
        connection.send(REFUSED + reason.encode())


def adopt_launcher_environment(connection: socket.socket) -> list[str] | None:
    """Takes over the launcher's environment; returns the worker's program and arguments, or None
    if the launcher sent no go."""
    from engine.preload.wire import DESCRIPTORS, FORKED, GO, MAX_BYTES, read_order

    connection.settimeout(answer_seconds())
    _, (given, *streams), *_ = socket.recv_fds(connection, MAX_BYTES, DESCRIPTORS)
    order = read_order(given)
    os.setpgid(0, order["group"])
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    os.umask(order["mask"])
    new_random_numbers()
    connection.send(FORKED)
    confirmed = connection.recv(MAX_BYTES) == GO
    connection.close()
    return order["arguments"] if confirmed else None


def new_random_numbers() -> None:
    """Seeds unseeded generators randomly, as in a newly started process."""
    import numpy
    import torch

    random.seed()
    numpy.random.seed()
    torch.default_generator.seed()


if __name__ == "__main__":
    main()
