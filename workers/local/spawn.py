"""Start and end of child processes that must not outlive this one.

Invariant: every child leads its own session, so Ctrl-C in the terminal reaches only the holder,
which then ends its children in order; and every child dies when the thread that spawned it dies.
Spawn from the main thread.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine.config.deadlines import KILL

CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a child. `reach`: it may traverse directories closed to this account.
    `is_name`: the child stays this process's account, and sees itself as that one."""

    uid: int
    gid: int
    reach: bool = False
    is_name: bool = False


def command_of(
    command: Sequence[str], death_signal: signal.Signals, account: Account | None = None
) -> list[str]:
    """Returns `command` wrapped so that it gets `death_signal` when this process dies."""
    who = f"{account.uid}:{account.gid}" if account else "-"
    who = f"={who}" if account and account.is_name else who
    reach = "1" if account and account.reach else "0"
    script = [sys.executable, "-I", "-S", str(CHILD)]
    return [*script, str(os.getpid()), str(int(death_signal)), who, reach, *command]


def spawn(
    command: Sequence[str],
    *,
    death_signal: signal.Signals,
    output: IO[bytes],
    account: Account | None = None,
    environment: dict[str, str] | None = None,
    directory: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts `command` in its own session, with stdout and stderr in `output`."""
    return subprocess.Popen(
        command_of(command, death_signal, account),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        cwd=directory,
        start_new_session=True,
    )


def end(
    process: subprocess.Popen[bytes], steps: Sequence[tuple[signal.Signals, float]]
) -> signal.Signals | None:
    """Sends each signal and waits its seconds, then SIGKILLs the group.

    Returns the signal that ended the process; None if it had already ended.
    """
    if process.poll() is not None:
        return None
    for number, seconds in steps:
        process.send_signal(number)
        try:
            process.wait(seconds)
            return number
        except subprocess.TimeoutExpired:
            continue
    kill_group(process.pid)
    process.wait(KILL.seconds)
    return signal.SIGKILL


def how_ended(status: int) -> str:
    """Returns how a process with this `returncode` ended: "by SIGKILL", "with exit status 1"."""
    if status >= 0:
        return f"with exit status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:  # of real-time signals only the first and the last have names
        return f"by signal {-status}"


def kill_group(pid: int) -> None:
    """SIGKILLs the process group that `pid` leads, if it still exists."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
