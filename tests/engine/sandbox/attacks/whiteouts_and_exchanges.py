# tries: to leave device nodes behind, and folders in one another's place
# path: call
# observed: wrong_answer

import ctypes
import os

LIBC = ctypes.CDLL(None)


def solve(x):
    try:
        os.mkdir("/tmp/a")
        os.mkdir("/tmp/b")
        open("/tmp/a/f", "w").close()
    except OSError:
        pass
    for flags in (4, 2, 6, 1):
        LIBC.renameat2(-100, b"/tmp/a/f", -100, b"/tmp/b/f", flags)
        LIBC.renameat2(-100, b"/tmp/b", -100, b"/tmp/a", flags)
    LIBC.mknod(b"/tmp/null", 0o20666, 0x103)
    LIBC.mkfifo(b"/tmp/fifo", 0o666)
    return None
