"""Makes calls of one program one by one, each in a clean child of its own.

Runs in a child of the zygote, behind every wall but those against forking and killing. It
compiles the program once, and executes nothing of it: that is done by the child that it forks for
each call, behind the walls that were missing. So a call costs a fork, and no more.

Invariants: a child starts when the one before it is dead. It has the descriptor of its own result
and no other, and finds nothing, in memory or on disk, that a child before it has written: where
the writable folder was touched, the rest is left to another order. So it is once the children
together have taken one time limit, or written more than the owner wants to read at once; a call
that was not made is missing from the report. So are the calls after one before which the program
could not be loaded.

Standard library only, imported by the zygote before it forks.
"""

import fcntl
import marshal
import os
import signal
import time

import walls
from child import INCOMING, STREAM, call, compiled, define, not_loaded, send, silence, write
from watching import watch
from wire import EXITED, FRAME, HEAD, MOST_WRITTEN, NOT_LOADED, OUT_OF_TIME, READY, SIGNALLED

MOST_DESCRIPTORS = 128


def each_alone(job, results, tell, inside, cpu_seconds, wall_seconds, file_bytes) -> None:
    """Make a call per descriptor in `results`, and tell of each child that it was READY, its HEAD.

    The arguments of all calls lie in INCOMING, one after the other.
    """
    prelude, program, entry_point, limit, sizes = marshal.loads(job)  # nosec B302
    codes, failure = compiled(prelude, program)
    silence(limit)
    if failure:  # nothing is executed, so nothing needs a process of its own
        for result in results:
            send(result, 0, *not_loaded(failure))
            write(tell, READY + HEAD.pack(EXITED, 0, 0.0, 0.0))
        return
    place, written, used = 0, 0, 0.0
    for result, size in zip(results, sizes, strict=True):
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(result, STREAM)
                packed = os.pread(INCOMING, size, place)
                walls.die_with_parent()
                walls.seal(inside, file_bytes, inside.no_forks)
                write(tell, READY)
                os.closerange(INCOMING, MOST_DESCRIPTORS)
                function, failure = define(codes, None, entry_point)
                send(STREAM, 0, *(failure or call(function, packed, limit)))
            finally:
                os._exit(0)
        ending, code, cpu = ended(pid, cpu_seconds, started + wall_seconds)
        seconds = time.monotonic() - started
        write(tell, HEAD.pack(ending, code, seconds, cpu))
        place += size
        written += os.fstat(result).st_size
        used += max(seconds / wall_seconds, cpu / cpu_seconds)
        reset(0)
        if used >= 1 or written > MOST_WRITTEN or not inside.is_empty() or not_once_loaded(result):
            return


def not_once_loaded(result: int) -> bool:
    """Whether a child reports that the program could not be loaded, as it will for every call."""
    head = os.pread(result, FRAME.size, 0)
    return len(head) == FRAME.size and FRAME.unpack(head)[1] in range(NOT_LOADED, 2 * NOT_LOADED)


def ended(pid: int, cpu_seconds: float, deadline: float) -> tuple[int, int, float]:
    """How a child ended that has no process but itself, its exit status, its seconds of CPU."""
    ending = watch(pid, cpu_seconds, deadline)
    if ending == OUT_OF_TIME:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    code, cpu = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
    return named(ending, code, cpu > cpu_seconds), code, cpu


def named(ending: int, code: int, used_up: bool) -> int:
    """What the ending of a child was, seen from its exit status and its seconds of CPU."""
    if ending == EXITED and code < 0:
        by_limit = code == -signal.SIGXCPU or (used_up and code == -signal.SIGKILL)
        return OUT_OF_TIME if by_limit else SIGNALLED
    return ending


def reset(descriptor: int) -> None:
    """Undo what a child did to the flags of an open file that it shares with those after it."""
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_RDWR)
