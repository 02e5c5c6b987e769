"""The zygote: a bare interpreter that forks one clean child per program and watches it.

Run by path as `python -s -S -P -B zygote.py NUMBER`, with the control socket as fd 0. Reads
jobs from its owner and answers each with one reply (wire.py). The child is not trusted, so its
stream is carried unread. Imports only the standard library.

Invariants: one child at a time; when the reply is sent, no process of that job is alive; when
the owner is gone, so is the zygote.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123
# pathlib would make the zygote bigger, and every fork of it slower.

import gc
import marshal
import os
import select
import signal
import sys
import time
from contextlib import suppress

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(os.path.dirname(HERE), "problems")]

import child  # noqa: E402
import walls  # noqa: E402
from wire import (  # noqa: E402
    EXITED,
    FRAME,
    HEAD,
    LENGTH,
    OUT_OF_TIME,
    READY,
    SIGNALLED,
    TOO_MUCH_OUTPUT,
    max_payload,
)

CONTROL, NULL, STREAM = 3, 4, 3
RESERVE_BYTES = 8 << 20
# What programs import most; loaded here, an import in a child is a dictionary look-up.
PRELOADED = (
    "abc bisect cmath collections collections.abc copy dataclasses decimal enum fractions"
    " functools heapq itertools json math numbers operator random re statistics string typing"
)


def main() -> None:
    os.dup2(0, CONTROL)
    os.dup2(os.open(os.devnull, os.O_RDWR), NULL)
    os.dup2(NULL, 0)
    os.closerange(NULL + 1, 1024)
    number = int(sys.argv[1])
    try:
        uid = walls.private_uid(number)
        baseline = address_space()
        standing = set_up() + ["uid"] * bool(uid) + ["seccomp"] * walls.filters_calls()
        if not {"pid", "uid", "seccomp"} & set(standing):
            raise OSError("nothing on this host keeps a program from killing our processes")
    except Exception as error:
        reply(b"E" + f"{type(error).__name__}: {error}".encode())
        return
    reply(b"W" + " ".join(standing).encode())
    serve(uid, baseline, alone="pid" in standing)


def address_space() -> int:
    """Bytes that this process has mapped: what a program gets comes on top."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def set_up() -> list[str]:
    """Put up the zygote's own walls; returns the names of all that stand."""
    for name in PRELOADED.split():
        __import__(name)
    sys.path = [path for path in sys.path if not path.startswith(os.path.dirname(HERE))]
    sys.argv = [child.FILE_NAME]
    for name in ("child", "literals", "seccomp", "walls", "wire"):
        del sys.modules[name]
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    standing = walls.enter_namespaces(os.path.dirname(os.__file__))
    walls.die_with_parent()
    if "pid" in standing:
        become_init()
    walls.hide()
    walls.adopt_orphans()
    gc.disable()
    gc.freeze()
    return standing


def become_init() -> None:
    """Go on as process 1 of the new pid namespace, which no process inside it can kill."""
    pid = os.fork()
    if pid == 0:
        walls.die_with_parent()
        return
    os.closerange(0, 1024)  # the owner must see the end of the socket when process 1 dies
    os.waitpid(pid, 0)
    os._exit(0)


def serve(uid: int, baseline: int, alone: bool) -> None:
    """Answer jobs until the owner closes the socket."""
    while (head := receive(LENGTH.size)) is not None:
        body = receive(*LENGTH.unpack(head))
        if body is None:
            return
        reply(run(marshal.loads(body), uid, baseline, alone))
        del body


def receive(size: int) -> bytes | None:
    chunks = []
    while size:
        chunk = os.read(CONTROL, min(size, 1 << 20))
        if not chunk:
            return None
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def reply(data: bytes) -> None:
    child.send(CONTROL, LENGTH.pack(len(data)) + data)


def run(job: tuple, uid: int, baseline: int, alone: bool) -> bytes:
    """Fork a child for one job, wait for its end, and leave nothing of it alive."""
    *_, calls, output_bytes, cpu_seconds, wall_seconds, _ = job
    started = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        be_child(job, uid, baseline, writer)
    os.close(writer)
    chunks: list[bytes] = []
    most = len(READY) + len(calls) * (FRAME.size + max_payload(output_bytes))
    pidfd = os.pidfd_open(pid)
    try:
        ending = watch(pid, pidfd, reader, chunks, most, cpu_seconds, started + wall_seconds)
    finally:
        code = clean_up(pid, alone)
        os.close(pidfd)
        os.close(reader)
    if ending == EXITED and code < 0:
        ending = OUT_OF_TIME if code == -signal.SIGXCPU else SIGNALLED
    head = HEAD.pack(ending, code, time.monotonic() - started)
    return head + b"".join(chunks)


def be_child(job: tuple, uid: int, baseline: int, writer: int) -> None:
    """Never returns."""
    try:
        program, entry_point, calls, output_bytes, cpu_seconds, _, memory_bytes = job
        for standard in (0, 1, 2):
            os.dup2(NULL, standard)
        os.dup2(writer, STREAM)
        os.closerange(STREAM + 1, 64)
        try:
            walls.confine(uid, cpu_seconds, baseline + memory_bytes, RESERVE_BYTES)
        except BaseException as error:
            child.send(STREAM, str(error).encode("utf-8", "replace"))
            return
        child.send(STREAM, READY)
        child.answer(program, entry_point, calls, output_bytes, STREAM)
    finally:
        os._exit(0)


def watch(pid, pidfd, reader, chunks, most, cpu_seconds, deadline) -> int:
    """Collect the child's stream until it ends or breaks a limit; says how it ended.

    Waits for: frames, the child's end, its wall and CPU deadlines, the owner's end.
    """
    cpu_clock = (~pid << 3) | 2  # the kernel's id of another process's CPU clock
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    poller.register(pidfd, select.POLLIN)
    poller.register(CONTROL, 0)  # only its hang-up
    flowing = True
    while True:
        left = min(deadline - time.monotonic(), cpu_seconds - cpu_used(cpu_clock))
        if left <= 0:
            return OUT_OF_TIME
        ready = dict(poller.poll(left * 1000 + 1))
        if CONTROL in ready:
            clean_up(pid, alone=os.getpid() == 1)
            os._exit(0)
        if pidfd in ready:
            os.set_blocking(reader, False)
        if flowing and (reader in ready or pidfd in ready):
            flowing = drain(reader, chunks, once=pidfd not in ready, most=most)
            if not flowing:
                poller.unregister(reader)
            if sum(map(len, chunks)) > most:
                return TOO_MUCH_OUTPUT
        if pidfd in ready:
            return EXITED


def cpu_used(clock: int) -> float:
    try:
        return time.clock_gettime(clock)
    except OSError:  # the child has just ended
        return 0.0


def drain(reader: int, chunks: list[bytes], once: bool, most: int) -> bool:
    """Read what is there; False at the end of the stream."""
    while True:
        try:
            chunk = os.read(reader, 65536)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        chunks.append(chunk)
        if once or sum(map(len, chunks)) > most:
            return True


def clean_up(pid: int, alone: bool) -> int:
    """Kill and reap everything the child left; returns its exit status, or minus its signal."""
    targets = [(os.kill, pid), (os.killpg, pid)] + [(os.kill, -1)] * alone
    for kill, target in targets:
        with suppress(ProcessLookupError, PermissionError):
            kill(target, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0 if alone else os.WNOHANG)[0]:
            pass
    return code


if __name__ == "__main__":
    main()
