"""Zygote of the sandbox: a bare interpreter that forks one clean child per program and watches it.

Run by path as `python -s -S -P -B zygote.py NUMBER safe|unsafe`, with the control socket as
fd 0. Takes orders from its owner and sends one reply to each (wire.py). Imports only the standard
library.

Invariants: one child at a time; when the reply is sent, no process of that job is alive; the
zygote ends with its owner. No program, argument or value ever enters this process: it only passes
descriptors on, so the memory of a child holds nothing of an earlier one.
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

# A child seeds `random` itself, always with the same seed: seeding at fork would only take time.
register_at_fork = os.register_at_fork
os.register_at_fork = lambda **_: None

import _sitebuiltins  # noqa: E402
import _socket  # noqa: E402
import _thread  # noqa: E402

import child  # noqa: E402
import judging  # noqa: E402
import library  # noqa: E402
import wakeup  # noqa: E402
from isolation import (  # noqa: E402
    GIVEN,
    GIVEN_WITH_CHANNEL,
    RULES,
    Isolation,
    adopt_orphans,
    confine,
    enter,
    trim,
)
from watchdog import ABANDONED, watch  # noqa: E402
from wire import (  # noqa: E402
    ANSWER,
    CALLS,
    EXITED,
    FORK_PER_CALL,
    HEAD,
    JUDGE,
    MAX_FORKS,
    MAX_MESSAGE,
    MAX_WRITTEN,
    NOT_LOADED,
    ORDER,
    OUT_OF_TIME,
    READY,
    SCRIPT,
    SIGNALLED,
)

Order = namedtuple("Order", "kind cpu_seconds wall_seconds memory_bytes file_bytes backstop")

CONTROL, NULL = 3, 4
MAX_SENT, MAX_DESCRIPTORS = MAX_FORKS + 3, 128
FIRST_OWN, REPORT = RULES, 9  # descriptors that only the walls of a child need
FIRST_FREE = 10  # the descriptors of a job lie above those of a child
RESERVE_BYTES = 8 << 20
STACK_BYTES = 2 << 20  # per thread: 32 of the usual 8 MiB would use up all that a program may map
TASKS = {CALLS: child.calls, SCRIPT: child.script, ANSWER: child.answer, JUDGE: judging.judge}
OWN_MODULES = (
    "child failures isolation judging landlock library linked literals mounts objects seccomp"
    " shapes streams wakeup watchdog wire"
)
# What programs import most; loaded here, an import in a child is a dictionary look-up.
PRELOADED = (
    "abc bisect cmath collections collections.abc copy dataclasses datetime decimal enum fractions"
    " functools heapq itertools json math numbers operator random re statistics string typing"
)


def main() -> None:
    """Sets up the walls, reports them, and serves orders until the owner ends."""
    # Independent of the owner's umask: an account without rights enters the folders of the root
    # that is made here, and nothing else is ever written.
    os.umask(0o022)
    os.dup2(0, CONTROL)
    os.dup2(os.open(os.devnull, os.O_RDWR), NULL)
    os.dup2(NULL, 0)
    os.closerange(NULL + 1, 1024)
    for reserved in range(NULL + 1, FIRST_FREE):
        os.dup2(NULL, reserved)  # until the walls, or a child, replace it
    control = _socket.socket(fileno=CONTROL)
    number, unsafe = int(sys.argv[1]), sys.argv[2] == "unsafe"
    try:
        isolation, baseline = set_up(number)
        if not (isolation.tier or unsafe):
            raise OSError(f"this host allows neither tier of walls: {isolation.missing()}")
    except Exception as error:
        control.send(b"E" + f"{type(error).__name__}: {error}".encode()[: MAX_MESSAGE - 1])
        return
    control.send(b"W" + " ".join((isolation.tier or "none", *isolation.walls)).encode())
    serve(control, isolation, baseline)


def address_space() -> int:
    """Returns the bytes that this process has mapped; a program's memory is added to them."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def set_up(number: int) -> "tuple[Isolation, int]":
    """Loads what children need and sets up the walls that they share.

    Returns these walls, and the bytes of this process's memory that do not count as a child's.
    """
    gc.disable()  # what it frees leaves holes, which a child fills: a copy of a page for each
    baseline = address_space()

    def leave_files() -> None:
        nonlocal baseline
        before = address_space()
        library.load()
        baseline += address_space() - before

    for name in PRELOADED.split():
        __import__(name)
    os.register_at_fork = register_at_fork
    os.uname = vars(sys.modules["posix"])["uname"] = uname
    os.fstat = vars(sys.modules["posix"])["fstat"] = library.fstat
    library.mmap.mmap = library.Mapping
    sys.meta_path.insert(0, wakeup.Finder())
    sys.modules["re"].purge()
    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D")
    sys.path = [path for path in sys.path if not path.startswith(os.path.dirname(HERE))]
    sys.argv = [child.FILE_NAME]
    _thread.stack_size(STACK_BYTES)
    sys.set_int_max_str_digits(0)  # programs print long numbers; their limit is that of time
    for name in OWN_MODULES.split():
        del sys.modules[name]
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    isolation = enter(number, os.path.dirname(os.__file__), become_init, leave_files)
    if "chroot" in isolation.walls:
        relocate(os.path.dirname(os.path.dirname(os.__file__)))
    adopt_orphans()
    trim()
    gc.freeze()
    return isolation, baseline


def uname() -> os.uname_result:
    """Replaces `os.uname` for programs: hides name and version of the host and its kernel."""
    return os.uname_result(("Linux", "sandbox", "", "", MACHINE))


def relocate(root: str) -> None:
    """Adapts the import paths after a chroot: the folder `root` has become /."""
    sys.path = [path.removeprefix(root) for path in sys.path]
    sys.path_importer_cache.clear()
    for module in list(sys.modules.values()):
        if hasattr(module, "__path__"):
            module.__path__ = [path.removeprefix(root) for path in module.__path__]


def become_init() -> None:
    """Continues as process 1 of the new pid namespace, which no process inside it can kill."""
    pid = os.fork()
    if pid == 0:
        return
    os.closerange(0, 1024)  # the owner must see the end of the socket when process 1 dies
    os.waitpid(pid, 0)
    os._exit(0)


def serve(control: "_socket.socket", isolation: "Isolation", baseline: int) -> None:
    """Executes orders until the owner closes the socket."""
    room = _socket.CMSG_SPACE(4 * MAX_SENT)
    while True:
        message, extra, *_ = control.recvmsg(MAX_MESSAGE, room)
        if not message:
            return
        if len(message) == ORDER.size:  # otherwise a STOP that came after the end
            descriptors = [fd for *_, data in extra for fd in memoryview(data).cast("i")]
            order = Order(*ORDER.unpack(message))
            control.send(run(order, descriptors, control, isolation, baseline))


def run(
    order: Order,
    descriptors: list[int],
    control: "_socket.socket",
    isolation: "Isolation",
    baseline: int,
) -> bytes:
    """Executes one job, in one child or in one per call; leaves no process alive."""
    try:
        if order.kind == FORK_PER_CALL:
            return run_fork_per_call(order, descriptors, control, isolation, baseline)
        head, report = fork_child(order, descriptors, 0, control, isolation, baseline)
        return head + report
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def run_fork_per_call(
    order: Order,
    descriptors: list[int],
    control: "_socket.socket",
    isolation: "Isolation",
    baseline: int,
) -> bytes:
    """Runs each call in its own child, in sequence, until together they have used one time limit.

    A child starts when the previous one is dead, and sees nothing of it. Calls that were not made
    are missing from the reply; so are those after a call whose child could not load the program.
    """
    job, calls, codes, *results = descriptors
    started, reply, written, used = time.monotonic(), b"", 0, 0.0
    for index, result in enumerate(results):
        files = (job, result, calls, codes)
        head, report = fork_child(order, files, index, control, isolation, baseline)
        reason, code, seconds, cpu = HEAD.unpack(head)
        if report[:1] != READY:  # the child had no walls; `report` is the reason
            if not reply:
                return head + report
            break
        reply += READY + head
        written += os.fstat(result).st_size
        used += max(seconds / order.wall_seconds, cpu / order.cpu_seconds)
        if used >= 1 or written > MAX_WRITTEN or (reason, code) == (EXITED, NOT_LOADED):
            break
    return HEAD.pack(EXITED, 0, time.monotonic() - started, 0.0) + READY + reply


def fork_child(
    order: Order,
    files: Sequence[int],
    index: int,
    control: "_socket.socket",
    isolation: "Isolation",
    baseline: int,
) -> tuple[bytes, bytes]:
    """Forks a child, waits for its end, and removes everything that it left.

    Returns its HEAD, and READY or the reason why it had no walls.
    """
    isolation.renew()
    started = time.monotonic()
    report_read, report_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        run_child(order, files, index, report_write, isolation, baseline)
    os.close(report_write)
    reason = ABANDONED
    try:
        reason = watch(pid, order.cpu_seconds, started + order.wall_seconds, control)
    finally:
        code, cpu = clean_up(pid, isolation)
        reset(NULL)
        report = os.read(report_read, MAX_MESSAGE // 2)
        os.close(report_read)
    if reason == ABANDONED:
        os._exit(0)
    reason = exit_reason(reason, code, cpu > order.cpu_seconds)
    return HEAD.pack(reason, code, time.monotonic() - started, cpu), report


def exit_reason(reason: int, code: int, used_up: bool) -> int:
    """Returns the exit reason of a child, corrected by its exit status and its use of CPU time."""
    if reason == EXITED and code < 0:
        by_limit = code == -signal.SIGXCPU or (used_up and code == -signal.SIGKILL)
        return OUT_OF_TIME if by_limit else SIGNALLED
    return reason


def reset(descriptor: int) -> None:
    """Resets the flags of an open file that a child shares with its successors."""
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_RDWR)


def run_child(
    order: Order,
    files: Sequence[int],
    index: int,
    report_write: int,
    isolation: "Isolation",
    baseline: int,
) -> None:
    """Runs the job in the forked child; never returns."""
    memory_bytes = order.memory_bytes + baseline
    status = 0
    try:
        job = read_whole(files[0])
        place_descriptors(order.kind, files[1:], report_write)
        try:
            open_files = GIVEN_WITH_CHANNEL if order.kind in (ANSWER, JUDGE) else GIVEN
            confine(
                isolation, order.backstop, memory_bytes, order.file_bytes, RESERVE_BYTES, open_files
            )
        except BaseException as error:
            child.write(REPORT, str(error).encode("utf-8", "replace"))
            return
        child.write(REPORT, READY)
        os.closerange(FIRST_OWN, FIRST_FREE)
        if order.kind == FORK_PER_CALL:
            status = child.one_call(job, index)
        else:
            TASKS[order.kind](job)
    finally:
        os._exit(status)


def place_descriptors(kind: int, files: Sequence[int], report_write: int) -> None:
    """Moves a child's descriptors to their fixed numbers; closes all others but those of walls."""
    # Stdin and stdout of a script, the two ends of a judge's channel, or arguments and code.
    first = 0 if kind == SCRIPT else child.INCOMING
    targets = (child.STREAM, first, first + 1)[: len(files)]
    for target in (0, 1, 2, child.STREAM):
        os.dup2(NULL, target)
    for target, source in zip(targets, files, strict=True):
        os.dup2(source, target)
    os.dup2(report_write, REPORT)
    os.closerange(max(child.STREAM, *targets) + 1, FIRST_OWN)
    os.closerange(FIRST_FREE, MAX_DESCRIPTORS)


def read_whole(descriptor: int) -> bytes:
    """Returns the content of a file, whatever its position."""
    size = os.fstat(descriptor).st_size
    data = bytearray()
    while len(data) < size:
        data += os.pread(descriptor, size - len(data), len(data))
    return bytes(data)


def clean_up(pid: int, isolation: "Isolation") -> tuple[int, float]:
    """Kills and reaps all processes that the child left.

    Returns its exit status, or minus its signal, and its seconds of CPU.
    """
    targets = [(os.kill, pid), (os.killpg, pid)] + [(os.kill, -1)] * isolation.owns_pid_namespace
    for kill, target in targets:
        with suppress(ProcessLookupError, PermissionError):
            kill(target, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0 if isolation.closed else os.WNOHANG)[0]:
            pass
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
