"""Mounts of a sandbox: its read-only root and the one folder in it that programs may write.

Standard library only, loaded by path in the zygote.
"""

# ruff: noqa: PTH103, PTH112, PTH115, PTH119, PTH120, PTH102, PTH211

import ctypes
import os

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 32, 4096, 16384
MS_NOEXEC, MS_PRIVATE, MNT_DETACH = 8, 1 << 18, 2
TEMPORARY = "/tmp"  # nosec B108
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")

_libc = ctypes.CDLL(None, use_errno=True)
_ = _libc.capset  # looked up once, and not by every child


def call(name: str, *arguments: object) -> None:
    """Calls a function of the C library.

    Raises:
        OSError: it returned -1; names the function.
    """
    if getattr(_libc, name)(*arguments) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def change_root(library: str, libraries: list[str]) -> None:
    """Enters a read-only root that holds `library`, the files `libraries`, /dev/null and a small
    /tmp, nothing else: no other file of the host's system folders."""
    root = "/tmp"  # nosec B108
    _mount("none", "/", "", MS_REC | MS_PRIVATE)
    # Held open, because the new root covers /tmp, and one of them may be there.
    top = os.path.realpath(library)
    bound = {path: os.open(path, os.O_PATH) for path in {top, *_outside(top, libraries)}}
    null = os.open(os.devnull, os.O_PATH)
    _mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=256,mode=755")
    for path in filter(os.path.islink, _SYSTEM):  # where the loader looks
        os.symlink(os.readlink(path), root + path)
    for path, descriptor in bound.items():
        os.makedirs(root + (path if path == top else os.path.dirname(path)), exist_ok=True)
        if path != top:
            os.close(os.open(root + path, os.O_CREAT | os.O_WRONLY))
        _bind(f"/proc/self/fd/{descriptor}", root + path)
        os.close(descriptor)
    for folder in _packages(library):
        if os.path.isdir(root + folder):
            _mount("tmpfs", root + folder, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "nr_inodes=2")
    os.mkdir(root + "/dev")
    os.close(os.open(root + os.devnull, os.O_CREAT | os.O_WRONLY))
    _mount(f"/proc/self/fd/{null}", root + os.devnull, "", MS_BIND)
    _read_only(root + os.devnull, 0)  # otherwise all could set the times of the host's node
    os.close(null)
    os.mkdir(root + TEMPORARY)
    mount_temporary(root + TEMPORARY)
    _mount("none", root, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def mount_temporary(target: str) -> None:
    """Mounts an empty folder of 1 MiB and 64 files, which may be written and holds no programs."""
    limits = MS_NOSUID | MS_NODEV | MS_NOEXEC
    _mount("tmpfs", target, "tmpfs", limits, "size=1m,nr_inodes=64,mode=1777")


def _packages(library: str) -> list[str]:
    """Returns where packages, with any data they have, may be next to the standard library."""
    names = ("site-packages", "dist-packages")
    return [f"{top}/{name}" for top in (os.path.realpath(library), "/usr/lib/python3")
            for name in names]  # fmt: skip


def _outside(top: str, files: list[str]) -> set[str]:
    """Returns those of the files that are not below a folder, in folders without symbolic links."""
    real = {f"{os.path.realpath(os.path.dirname(p))}/{os.path.basename(p)}" for p in files}
    return {path for path in real if not path.startswith(f"{top}/")}


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = [text.encode() for text in (source, target, kind)]
    call("mount", *words, ctypes.c_ulong(flags), data.encode())


def _bind(source: str, target: str) -> None:
    _mount(source, target, "", MS_BIND | MS_REC)
    _read_only(target, MS_NODEV)


def _read_only(target: str, flags: int) -> None:
    inherited = os.statvfs(target).f_flag & 0xC0F  # flags of the source may not be removed
    _mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | inherited | flags)
