# tries: to change a file that is there already
# path: call
# observed: wrong_answer

import os


def solve(x):
    for path in (os.__file__, "@SECRET@", "/etc/passwd", "/etc/ld.so.cache"):
        for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_APPEND | os.O_WRONLY):
            try:
                os.open(path, flags)
                return sorted(x)
            except OSError:
                pass
        for change in (
            lambda: os.truncate(path, 0), lambda: os.chmod(path, 0o777), lambda: os.utime(path),
            lambda: os.unlink(path), lambda: os.rename(path, path + "x"),
            lambda: os.chown(path, 0, 0), lambda: os.setxattr(path, "user.x", b"1"),
        ):
            try:
                change()
                return sorted(x)
            except OSError:
                pass
    return None
