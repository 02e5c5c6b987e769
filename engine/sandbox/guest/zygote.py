"""The zygote: a bare interpreter that forks one clean child per program and watches it.

Run by path as `python -s -S -P -B zygote.py NUMBER safe|unsafe`, with the control socket as
fd 0. Takes orders from its owner and answers each with one reply (wire.py). Imports only the
standard library.

Invariants: one child at a time; when the reply is sent, no process of that job is alive; when
the owner is gone, so is the zygote. No program, argument or value ever enters this process: it
only hands descriptors on, so a child finds nothing of an earlier one in its memory.
"""

# ruff: noqa: PTH100, PTH120, PTH123
# pathlib would make the zygote bigger, and every fork of it slower.

import builtins
import fcntl
import gc
import os
import signal
import sys
import time
from collections import namedtuple
from collections.abc import Sequence
from contextlib import suppress

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = os.uname().machine
sys.path.append(HERE)

# A child seeds `random` itself, always alike: that a fork seeds it too would only take time.
register_at_fork = os.register_at_fork
os.register_at_fork = lambda **_: None

import _sitebuiltins  # noqa: E402
import _socket  # noqa: E402
import _thread  # noqa: E402

import child  # noqa: E402
import judging  # noqa: E402
import library  # noqa: E402
import wakeup  # noqa: E402
import walls  # noqa: E402
from watchdog import ABANDONED, watch  # noqa: E402
from wire import (  # noqa: E402
    ALONE,
    ANSWER,
    CALLS,
    EXITED,
    HEAD,
    JUDGE,
    MAX_MESSAGE,
    MOST_ALONE,
    MOST_WRITTEN,
    NOT_LOADED,
    ORDER,
    OUT_OF_TIME,
    READY,
    SCRIPT,
    SIGNALLED,
)

Order = namedtuple("Order", "kind cpu_seconds wall_seconds memory_bytes file_bytes backstop")

CONTROL, NULL = 3, 4
MOST_SENT, MOST_DESCRIPTORS = MOST_ALONE + 3, 128
FIRST_OWN, TELL = walls.RULES, 9  # what only the walls of a child need
FIRST_FREE = 10  # what a job brings lies above what a child gets
RESERVE_BYTES = 8 << 20
STACK_BYTES = 2 << 20  # of a thread: 32 of the usual 8 MiB would be all that a program may map
TASKS = {CALLS: child.calls, SCRIPT: child.script, ANSWER: child.answer, JUDGE: judging.judge}
OURS = "child judging landlock library literals objects seccomp wakeup walls watchdog wire"
# What programs import most; loaded here, an import in a child is a dictionary look-up.
PRELOADED = (
    "abc bisect cmath collections collections.abc copy dataclasses decimal enum fractions"
    " functools heapq itertools json math numbers operator random re statistics string typing"
)


def main() -> None:
    # Whatever its owner's is: the folders of the root that is made here are entered by an account
    # without rights, and nothing else is ever written.
    os.umask(0o022)
    os.dup2(0, CONTROL)
    os.dup2(os.open(os.devnull, os.O_RDWR), NULL)
    os.dup2(NULL, 0)
    os.closerange(NULL + 1, 1024)
    for reserved in range(NULL + 1, FIRST_FREE):
        os.dup2(NULL, reserved)  # until the walls, or a child, put something there
    control = _socket.socket(fileno=CONTROL)
    number, unsafe = int(sys.argv[1]), sys.argv[2] == "unsafe"
    try:
        inside, baseline = set_up(number)
        if not (inside.tier or unsafe):
            raise OSError(f"this host allows neither tier of walls: {inside.missing()}")
    except Exception as error:
        control.send(b"E" + f"{type(error).__name__}: {error}".encode()[: MAX_MESSAGE - 1])
        return
    control.send(b"W" + " ".join((inside.tier or "none", *inside.standing)).encode())
    serve(control, inside, baseline)


def address_space() -> int:
    """Bytes that this process has mapped: what a program gets comes on top."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def set_up(number: int) -> "tuple[walls.Walls, int]":
    """Load what children need and put up the walls that they share.

    Returns these, and the bytes of its memory that are not counted as a child's.
    """
    baseline = address_space()

    def leave_files() -> None:
        nonlocal baseline
        before = address_space()
        library.load()
        vars(os)["fstat"] = vars(sys.modules["posix"])["fstat"] = library.fstat
        baseline += address_space() - before

    for name in PRELOADED.split():
        __import__(name)
    os.register_at_fork = register_at_fork
    os.uname = vars(sys.modules["posix"])["uname"] = uname
    sys.meta_path.insert(0, wakeup.Finder())
    sys.modules["re"].purge()
    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D")
    sys.path = [path for path in sys.path if not path.startswith(os.path.dirname(HERE))]
    sys.argv = [child.FILE_NAME]
    _thread.stack_size(STACK_BYTES)
    for name in OURS.split():
        del sys.modules[name]
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    inside = walls.enter(number, os.path.dirname(os.__file__), become_init, leave_files)
    if "chroot" in inside.standing:
        relocate(os.path.dirname(os.path.dirname(os.__file__)))
    walls.adopt_orphans()
    gc.disable()
    gc.freeze()
    return inside, baseline


def uname() -> os.uname_result:
    """What programs get instead of the names and the version of the host and its kernel."""
    return os.uname_result(("Linux", "sandbox", "", "", MACHINE))


def relocate(root: str) -> None:
    """The folder `root` has become /: look for modules where they are now."""
    sys.path = [path.removeprefix(root) for path in sys.path]
    sys.path_importer_cache.clear()
    for module in list(sys.modules.values()):
        if hasattr(module, "__path__"):
            module.__path__ = [path.removeprefix(root) for path in module.__path__]


def become_init() -> None:
    """Go on as process 1 of the new pid namespace, which no process inside it can kill."""
    pid = os.fork()
    if pid == 0:
        return
    os.closerange(0, 1024)  # the owner must see the end of the socket when process 1 dies
    os.waitpid(pid, 0)
    os._exit(0)


def serve(control: "_socket.socket", inside: "walls.Walls", baseline: int) -> None:
    """Carry out orders until the owner closes the socket."""
    room = _socket.CMSG_SPACE(4 * MOST_SENT)
    while True:
        message, extra, *_ = control.recvmsg(MAX_MESSAGE, room)
        if not message:
            return
        if len(message) == ORDER.size:  # else a STOP that came after the end
            descriptors = [fd for *_, data in extra for fd in memoryview(data).cast("i")]
            order = Order(*ORDER.unpack(message))
            control.send(run(order, descriptors, control, inside, baseline))


def run(
    order: Order,
    descriptors: list[int],
    control: "_socket.socket",
    inside: "walls.Walls",
    baseline: int,
) -> bytes:
    """Carry out one job, by one child or by one for each of its calls, and leave nothing alive."""
    try:
        if order.kind == ALONE:
            return run_alone(order, descriptors, control, inside, baseline)
        head, said = one_child(order, descriptors, 0, control, inside, baseline)
        return head + said
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def run_alone(
    order: Order,
    descriptors: list[int],
    control: "_socket.socket",
    inside: "walls.Walls",
    baseline: int,
) -> bytes:
    """A child for each call, one after the other, until they have taken one time limit together.

    A child starts when the one before it is dead, and finds nothing that it left. A call that was
    not made is missing from the reply; so are those after one whose child could not load it.
    """
    job, calls, codes, *results = descriptors
    started, reply, written, used = time.monotonic(), b"", 0, 0.0
    for index, result in enumerate(results):
        files = (job, result, calls, codes)
        head, said = one_child(order, files, index, control, inside, baseline)
        ending, code, seconds, cpu = HEAD.unpack(head)
        if said[:1] != READY:  # it had no walls, of which it says why
            if not reply:
                return head + said
            break
        reply += READY + head
        written += os.fstat(result).st_size
        used += max(seconds / order.wall_seconds, cpu / order.cpu_seconds)
        if used >= 1 or written > MOST_WRITTEN or (ending, code) == (EXITED, NOT_LOADED):
            break
    return HEAD.pack(EXITED, 0, time.monotonic() - started, 0.0) + READY + reply


def one_child(
    order: Order,
    files: Sequence[int],
    index: int,
    control: "_socket.socket",
    inside: "walls.Walls",
    baseline: int,
) -> tuple[bytes, bytes]:
    """Fork a child, wait for its end, and leave nothing of it.

    Returns its HEAD, and READY or why it had no walls.
    """
    inside.renew()
    started = time.monotonic()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        be_child(order, files, index, tell, inside, baseline)
    os.close(tell)
    ending = ABANDONED
    try:
        ending = watch(pid, order.cpu_seconds, started + order.wall_seconds, control)
    finally:
        code, cpu = clean_up(pid, inside)
        reset(NULL)
        said = os.read(told, MAX_MESSAGE // 2)
        os.close(told)
    if ending == ABANDONED:
        os._exit(0)
    ending = named(ending, code, cpu > order.cpu_seconds)
    return HEAD.pack(ending, code, time.monotonic() - started, cpu), said


def named(ending: int, code: int, used_up: bool) -> int:
    """What the ending of a child was, seen from its exit status and its seconds of CPU."""
    if ending == EXITED and code < 0:
        by_limit = code == -signal.SIGXCPU or (used_up and code == -signal.SIGKILL)
        return OUT_OF_TIME if by_limit else SIGNALLED
    return ending


def reset(descriptor: int) -> None:
    """Undo what a child did to the flags of an open file that it shares with those after it."""
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_RDWR)


def be_child(
    order: Order,
    files: Sequence[int],
    index: int,
    tell: int,
    inside: "walls.Walls",
    baseline: int,
) -> None:
    """Never returns."""
    memory_bytes = order.memory_bytes + baseline
    status = 0
    try:
        job = read_whole(files[0])
        arrange(order.kind, files[1:], tell)
        try:
            walls.confine(inside, order.backstop, memory_bytes, order.file_bytes, RESERVE_BYTES)
        except BaseException as error:
            child.write(TELL, str(error).encode("utf-8", "replace"))
            return
        child.write(TELL, READY)
        os.closerange(FIRST_OWN, FIRST_FREE)
        if order.kind == ALONE:
            status = child.one_call(job, index)
        else:
            TASKS[order.kind](job)
    finally:
        os._exit(status)


def arrange(kind: int, files: Sequence[int], tell: int) -> None:
    """Put what a child gets where it expects it, and close all else but what its walls need."""
    # Stdin and stdout of a script, the two ends of a judge's channel, or arguments and code.
    first = 0 if kind == SCRIPT else child.INCOMING
    targets = (child.STREAM, first, first + 1)[: len(files)]
    for target in (0, 1, 2, child.STREAM):
        os.dup2(NULL, target)
    for target, source in zip(targets, files, strict=True):
        os.dup2(source, target)
    os.dup2(tell, TELL)
    os.closerange(max(child.STREAM, *targets) + 1, FIRST_OWN)
    os.closerange(FIRST_FREE, MOST_DESCRIPTORS)


def read_whole(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    data = bytearray()
    while len(data) < size:
        data += os.pread(descriptor, size - len(data), len(data))
    return bytes(data)


def clean_up(pid: int, inside: "walls.Walls") -> tuple[int, float]:
    """Kill and reap everything the child left.

    Returns its exit status, or minus its signal, and its seconds of CPU.
    """
    targets = [(os.kill, pid), (os.killpg, pid)] + [(os.kill, -1)] * inside.alone
    for kill, target in targets:
        with suppress(ProcessLookupError, PermissionError):
            kill(target, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0 if inside.closed else os.WNOHANG)[0]:
            pass
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
