"""The walls around a program, as far as the host allows them.

`enter_namespaces` is called once by a zygote, before it forks anything; `confine` by every
child, after the fork and before the program is compiled. Standard library only: both run in a
bare interpreter outside the package.

Invariant: `confine` either puts up every wall or raises; a program never runs behind half.
"""

# ruff: noqa: PTH103, PTH112, PTH114, PTH115, PTH123, PTH211

import ctypes
import os
import resource
from contextlib import suppress

import seccomp

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 4, 38, 36
NEWNS, NEWUTS, NEWIPC, NEWUSER = 0x20000, 0x4000000, 0x8000000, 0x10000000
NEWPID, NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 32, 4096, 16384
MS_PRIVATE, MS_RELATIME, MNT_DETACH = 1 << 18, 1 << 21, 2
SIGKILL = 9
_PRIVATE_UIDS = 1_000_000_000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()
_CAPABILITY_HEADER = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


_filter = seccomp.build()


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), 0, 0, 0)


def filters_calls() -> bool:
    """Whether children run behind a system call filter."""
    return _filter is not None


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that started it ends."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def hide() -> None:
    """No core dump, no ptrace, no /proc/PID/mem for processes without capabilities."""
    _prctl(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def enter_namespaces(library: str) -> list[str]:
    """Leave the host's namespaces; returns the names of the walls that now stand.

    The pid namespace holds for processes forked after this call. `library` is the folder of
    the standard library: with the system's shared libraries, the only files left to see.
    """
    walls = _unshare(os.getuid(), os.getgid())
    with suppress(OSError):  # what stands is named; what does not, is not
        if walls:
            _change_root(library)
            walls.append("mount")
    return walls


def _unshare(uid: int, gid: int) -> list[str]:
    """New namespaces, all or none; a normal user gets them inside a user namespace."""
    try:
        _call("unshare", NEWNS | NEWUTS | NEWIPC | NEWPID | NEWNET | (NEWUSER if uid else 0))
    except OSError:
        return []
    if not uid:
        return ["pid", "net", "ipc", "uts"]
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {uid} 1")
    _write("/proc/self/gid_map", f"0 {gid} 1")
    return ["pid", "net", "ipc", "uts", "user"]


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = [text.encode() for text in (source, target, kind)]
    _call("mount", *words, ctypes.c_ulong(flags), data.encode())


def _change_root(library: str) -> None:
    """A read-only root that holds shared libraries and the standard library, nothing else."""
    root = "/tmp"
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    wanted = {os.path.realpath(library)}
    wanted |= {d for d in ("/lib", "/lib64", "/usr/lib", "/usr/lib64") if os.path.isdir(d)}
    # Held open, because the new root covers /tmp, and one of them may lie there.
    folders = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in sorted(wanted)}
    _mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=256,mode=755")
    for path, folder in folders.items():
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        else:
            os.makedirs(root + path, exist_ok=True)
            _bind(f"/proc/self/fd/{folder}", root + path)
        os.close(folder)
    _mount("none", root, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def _bind(source: str, target: str) -> None:
    _mount(source, target, "", MS_BIND | MS_REC)
    kept = os.statvfs(target).f_flag & 0xC0F  # flags of the source may not be taken off
    _mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def private_uid(number: int) -> int:
    """An unprivileged uid of its own for slot `number`; 0 for one that cannot change uids."""
    if os.getuid() != 0:
        return 0
    with open("/proc/self/uid_map") as file:
        start, _, length = max((list(map(int, line.split())) for line in file), key=lambda r: r[2])
    if _PRIVATE_UIDS + number < start + length:
        return _PRIVATE_UIDS + number
    if length < 4:
        return 0
    half = length // 2
    return start + half + number % (half - 1)


def confine(uid: int, cpu_seconds: float, memory_bytes: int, reserve_bytes: int) -> None:
    """Put this process behind every wall a child has. `uid` 0 keeps the uid.

    Raises:
        OSError: a wall could not be put up; the program must not be run.
    """
    os.setsid()
    cpu = int(cpu_seconds) + 2  # a backstop; the zygote watches the exact limit
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes + reserve_bytes))
    for limit, value in (
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(limit, (value, value))
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _call("capset", _CAPABILITY_HEADER, _NO_CAPABILITIES)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    die_with_parent()
    hide()
    if _filter is not None:
        _call("prctl", seccomp.PR_SET_SECCOMP, seccomp.MODE_FILTER, ctypes.byref(_filter), 0, 0)
