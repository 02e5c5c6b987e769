"""Landlock: the kernel's file system access control that needs no privilege.

Invariant: a process behind it opens no file for writing outside `writable`, reads none outside
`readable`, executes nothing and, on kernels that support it, binds or connects no TCP port.
Standard library only: loaded by path in the zygote.
"""

# ruff: noqa: PTH112

import ctypes
import errno
import os

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine
_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REGULAR = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_ON_A_FILE = _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_WRITE = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REGULAR | _TRUNCATE | _REFER
# Number N of file access rights of each interface version: bits 0 to N-1.
_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = [
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """Returns the version of the kernel's interface; 0 if there is none."""
    abi = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(abi, 0)


def rules(readable: list[str], writable: list[str]) -> int | None:
    """Returns the descriptor of a ruleset for `restrict_self`; None if there is no Landlock.

    Leaves out paths that do not exist.

    Raises:
        OSError: the kernel has Landlock and refused.
    """
    abi = version()
    if not abi:
        return None
    files = (1 << _BITS[min(abi, 5)]) - 1
    ruleset = _Ruleset(files, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    made = _call(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, access in ((readable, _READ), (writable, _READ | _WRITE)):
            for path in filter(os.path.exists, paths):
                _allow(made, path, access & files)
    except OSError:
        os.close(made)
        raise
    return made


def restrict_self(made: int) -> None:
    """Applies a ruleset to this process and its descendants. It must have set no_new_privs."""
    _call(_RESTRICT_SELF, ctypes.c_int(made), ctypes.c_uint32(0))


def _allow(rules: int, path: str, access: int) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        access &= _ON_A_FILE
    try:
        rule = _PathBeneath(access, folder)
        _call(
            _ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule),
            ctypes.c_uint32(0),
        )  # fmt: skip
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    result = _libc.syscall(number, *arguments)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)} ({errno.errorcode.get(code, code)})")
    return result
