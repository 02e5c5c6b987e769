"""Script that execs a program which dies with its holder; it is never imported for its effect.

    python -I -S child.py HOLDER_PID SIGNAL ACCOUNT REACH COMMAND...

Invariant: once COMMAND runs, the kernel sends it SIGNAL when the thread that started this
script ends, however it ends. This is a script between fork and exec, and not a `preexec_fn`,
because a holder has threads, and Python code between their fork and exec can deadlock.

ACCOUNT is `-` or the UID:GID to change to. `=UID:GID` changes nothing, but COMMAND sees itself as
that account, in a user namespace: for programs that need an account with a name.

REACH `1` keeps the one capability that lets that account traverse directories it may not enter (a
project under /root): it is raised as an ambient capability, so no permissions on disk change.
`access(2)`, with which Postgres looks for its own programs, ignores capabilities unless a secure
bit says otherwise, so that bit is set as well. The parent-death signal is set last: the kernel
clears it whenever a process changes its account.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_SET_SECUREBITS = 28
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522
CLONE_NEWUSER = 0x10000000

CANNOT_BECOME = 126
"""Exit status when the account, the signal or the program could not be set up."""


def become(account: str, reach: bool) -> None:
    """Drops from root to `account`; with `reach`, keeps the capability to traverse directories."""
    uid, gid = (int(part) for part in account.split(":"))
    if reach:
        prctl(PR_SET_KEEPCAPS, 1)
        # Refused where root lacks CAP_SETPCAP: then the programs must be in an open directory.
        with contextlib.suppress(OSError):
            prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if reach:
        keep_only(CAP_DAC_OVERRIDE)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE)


def appear_as(account: str) -> None:
    """Enters a user namespace in which this process's account is `account`, and no other exists."""
    uid, gid = account.split(":")
    own_uid, own_gid = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "user namespace: " + os.strerror(ctypes.get_errno()))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {own_uid} 1"),
        ("gid_map", f"{gid} {own_gid} 1"),
    ):
        (Path("/proc/self") / name).write_text(text)


def keep_only(capability: int) -> None:
    """Makes `capability` the only one that is effective, permitted and inheritable."""
    bit = 1 << capability
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset: " + os.strerror(ctypes.get_errno()))


def prctl(option: int, *arguments: int) -> None:
    """Calls `prctl(2)`; raises `OSError` if it fails."""
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    if ctypes.CDLL(None, use_errno=True).prctl(option, *padded) != 0:
        raise OSError(ctypes.get_errno(), "prctl: " + os.strerror(ctypes.get_errno()))


def main(arguments: list[str]) -> None:
    holder, number, account, reach, *command = arguments
    if account.startswith("="):
        appear_as(account[1:])
    elif account != "-":
        become(account, reach == "1")
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != int(holder):  # it died before the line above took effect
            signal.raise_signal(signal.SIGKILL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        print(f"cannot start {sys.argv[5]}: {error}", file=sys.stderr)
        sys.exit(CANNOT_BECOME)
