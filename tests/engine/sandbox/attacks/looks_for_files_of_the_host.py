# tries: to learn which files the host has, by how a look at one fails
# path: call
# observed: wrong_answer

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
THERE = (b"/etc/passwd", b"/proc/self/exe", b"/sys/kernel", b"/var/lib", b"/home", b"/boot")
found = (ctypes.c_uint64 * 64)()
LOOKS = (
    lambda path: libc.stat(path, found), lambda path: libc.lstat(path, found),
    lambda path: libc.access(path, 0), lambda path: libc.readlink(path, found, 64),
    lambda path: libc.open(path, 0), lambda path: libc.open(path, os.O_PATH),
    lambda path: libc.open(path, os.O_DIRECTORY), lambda path: libc.open(path, os.O_NOFOLLOW),
    lambda path: libc.open(path + b"/x", 0), lambda path: libc.open(path, os.O_CREAT | os.O_EXCL),
    lambda path: libc.chdir(path), lambda path: libc.statfs(path, found),
    lambda path: libc.truncate(path, 0), lambda path: libc.rename(path, path),
)


def seen(look, path):
    ctypes.set_errno(0)
    return look(path) >= 0, ctypes.get_errno()


def solve(x):
    for look in LOOKS:
        if any(seen(look, path) != seen(look, path + b"-missing") for path in THERE):
            return sorted(x)
    return None
