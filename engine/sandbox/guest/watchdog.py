"""Watchdog of a child and its limits. Standard library only, loaded by path in the zygote.

Invariant: whatever a child does, the wait for it ends at its deadline, or once it has used up its
seconds of CPU.
"""

import os
import select
import time
from _socket import socket

from wire import EXITED, MAX_MESSAGE, OUT_OF_TIME, STOPPED

ABANDONED = 4
"""In addition to the exit reasons of wire.py: the owner has ended."""


def watch(pid: int, cpu_seconds: float, deadline: float, control: "socket | None" = None) -> int:
    """Waits until a child ends, reaches a limit, or is no longer needed; returns which.

    Waits for the child's end, its wall and CPU deadlines, and, with the socket `control`, a message
    or the end of the owner. Does not reap the child.
    """
    cpu_clock = (~pid << 3) | 2  # the kernel's id of another process's CPU clock
    poller = select.poll()
    pidfd = os.pidfd_open(pid)
    try:
        poller.register(pidfd, select.POLLIN)
        if control:
            poller.register(control, select.POLLIN)
        while True:
            left = min(deadline - time.monotonic(), cpu_seconds - cpu_used(cpu_clock))
            if left <= 0:
                return OUT_OF_TIME
            ready = dict(poller.poll(left * 1000 + 1))
            if pidfd in ready:
                return EXITED
            if ready:
                return STOPPED if control and control.recv(MAX_MESSAGE) else ABANDONED
    finally:
        os.close(pidfd)


def cpu_used(clock: int) -> float:
    """Returns the seconds of CPU on the clock of a process; 0 once it has ended."""
    try:
        return time.clock_gettime(clock)
    except OSError:  # the child has just ended
        return 0.0
