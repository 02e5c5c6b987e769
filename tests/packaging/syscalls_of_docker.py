"""Runs a command behind what Docker's default seccomp profile refuses a process without
capabilities: namespaces and mounts. In such a container the sandbox has its restricted tier.

    python syscalls_of_docker.py COMMAND...

Standard library only. The calls are those of `profiles/seccomp/default.json` in moby/profiles that
need CAP_SYS_ADMIN: `clone` with one of the flags of namespaces is refused, and `clone3`, whose
flags a filter cannot read, is absent, so that the C library falls back to `clone`.
"""

import ctypes
import errno
import os
import struct
import sys

_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _FIRST_ARGUMENT = 0, 16
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_CLONE, _CLONE3 = {"x86_64": 56, "aarch64": 220}, 435
_REFUSED = {
    # unshare, setns, mount, umount2, pivot_root
    "x86_64": (272, 308, 165, 166, 155),
    "aarch64": (97, 268, 40, 39, 41),
}


def _filter(machine: str) -> bytes:
    """Returns the instructions (struct sock_filter): code, jump if true, jump if false, value."""
    refuse = (_RETURN, 0, 0, _ERROR | errno.EPERM)
    lines = [(_LOAD, 0, 0, _NUMBER)]
    for number in _REFUSED[machine]:
        lines += [(_EQUAL, 0, 1, number), refuse]
    lines += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    lines += [
        (_EQUAL, 0, 3, _CLONE[machine]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_BIT, 0, 1, _NAMESPACES), refuse,
        (_RETURN, 0, 0, _ALLOW),
    ]  # fmt: skip
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def main() -> None:
    code = _filter(os.uname().machine)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    for option, *values in ((_NO_NEW_PRIVS, 1, None), (_SECCOMP, _FILTER, program)):
        if libc.prctl(option, ctypes.c_ulong(values[0]), values[1], 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
