"""Launcher in place of a Ray worker's interpreter: has the worker forked, or becomes it.

Run by path as `python -I -S launcher.py WORKER.py ARGUMENTS...`. Imports little, and only from the
standard library.

Invariants:
- The worker starts once: either a fork received a go, or this process becomes the worker.
- A server serves one raylet, one environment and one user: its socket is in a directory of the
  Ray session that only this user may enter, and its name is a hash of all that an import depends
  on.
- After any failure of the server the worker starts anyway, and stderr has the reason.
"""

# ruff: noqa: PTH100, PTH102, PTH108, PTH109, PTH118, PTH120, PTH123
# pathlib takes as long to import as all the rest.

import contextlib
import fcntl
import json
import os
import signal
import socket
import stat
import sys
from hashlib import blake2b

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)

import wire  # noqa: E402

SERVER = os.path.join(HERE, "server.py")
RAY_REGISTER_TIMEOUT = "RAY_worker_register_timeout_seconds"
"""Variable with the seconds after which Ray gives up on a worker; 60 if it is not set."""
BACKLOG = 128


class NoServerError(Exception):
    """The server is not available; contains the reason."""


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGALRM, _on_timeout)
    try:
        # The rest of Ray's deadline is for a start without the server.
        signal.alarm(int(os.environ.get(RAY_REGISTER_TIMEOUT, "60")) * 2 // 3)
        request_fork(arguments)
    except Exception as error:
        signal.alarm(0)
        reason = f"{type(error).__name__}: {error}"
        print(f"not forked from a preloaded process: {reason}", file=sys.stderr, flush=True)
        os.execv(sys.executable, [sys.executable, *arguments])


def request_fork(arguments: list[str]) -> None:
    """Makes the node's server start a worker with this process's environment and descriptors.

    Raises:
        NoServerError: it did not, and will not; other exceptions mean the same.
    """
    if arguments[0].startswith("-"):
        raise NoServerError(f"the interpreter is to have options: {arguments[0]}")
    with connected(session_folder(arguments)) as connection:
        order = wire.write_order(
            {
                "arguments": arguments,
                "environment": dict(os.environ),
                "directory": os.getcwd(),
                "mask": _mask(),
                "group": os.getpgrp(),
            }
        )
        with contextlib.suppress(BrokenPipeError):  # it does not wait any longer, and says why
            socket.send_fds(connection, [wire.ORDER], [order, 0, 1, 2])
        await_fork(connection)
        signal.alarm(0)  # the rest cannot block, and must not be interrupted
        try:
            connection.send(wire.GO)
        except BrokenPipeError:
            await_fork(connection)
            raise


def await_fork(connection: socket.socket) -> None:
    """Waits until the fork has been made. Raises `NoServerError` with the reason if it was not."""
    answer = connection.recv(wire.MAX_BYTES)
    if answer[:1] != wire.FORKED:
        reason = answer[1:].decode(errors="replace")
        raise NoServerError(reason or "the server ended; its log is next to its socket")


def session_folder(arguments: list[str]) -> str:
    """Returns the private directory of this Ray session for the servers' sockets.

    Raises:
        NoServerError: it is not a directory that only this user owns and may enter.
    """
    given = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--") and "=" in a)
    session = os.path.join(given["temp-dir"], given["session-name"])
    folder = os.path.join(session, "preload")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)
    private = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
    if not private or status.st_uid != os.getuid():
        raise NoServerError(f"{folder} is not a directory that only this user owns and may enter")
    return folder


def connected(folder: str) -> socket.socket:
    """Returns a connection to the server, which is started if there is none."""
    path = os.path.join(folder, server_name())
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _connection(path)
        except (FileNotFoundError, ConnectionRefusedError):
            start_server(path)
            return _connection(path)


def server_name() -> str:
    """Returns a hash of all that an import depends on, and of the raylet with which the server
    ends."""
    variables = {name: v for name, v in os.environ.items() if name not in wire.PER_WORKER}
    inputs = [os.getppid(), os.getcwd(), sys.executable, SERVER, sorted(variables.items())]
    return blake2b(json.dumps(inputs).encode(), digest_size=6).hexdigest()


def start_server(path: str) -> None:
    """Starts the server that listens at `path`; connections are served once it has imported.

    Raises:
        NoServerError: this process was not started by a raylet.
    """
    raylet = os.pidfd_open(os.getppid())
    if os.environ.get("RAY_RAYLET_PID") != str(os.getppid()):
        raise NoServerError("this process is not a raylet's child")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(BACKLOG)
    log = os.open(f"{path}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    between = os.fork()
    if between == 0:  # the server must not be a child of the worker that we may become
        if os.fork() == 0:
            _become_server(listener.fileno(), raylet, log)
        os._exit(0)
    with contextlib.suppress(ChildProcessError):  # where Ray has the kernel reap children
        os.waitpid(between, 0)
    listener.close()
    os.close(raylet)
    os.close(log)


def _become_server(listener: int, raylet: int, log: int) -> None:
    """Becomes the server; never returns. Only its own descriptors stay open, since it outlives
    this worker."""
    try:
        signal.alarm(0)
        os.setpgid(0, 0)  # Ray may end this worker's group
        descriptors = [os.open(os.devnull, os.O_RDONLY), log, log, listener, raylet]
        above = max(descriptors) + 1
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, above + target, inheritable=False)
        for target in range(len(descriptors)):
            os.dup2(above + target, target)
        os.closerange(len(descriptors), 65536)
        os.execv(sys.executable, [sys.executable, SERVER])
    finally:
        os._exit(1)


def _connection(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _on_timeout(*_: object) -> None:
    raise NoServerError("waited too long for the server to import and fork")


if __name__ == "__main__":
    main(sys.argv[1:])
