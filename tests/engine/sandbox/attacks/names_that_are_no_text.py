# tries: to leave names behind that the service cannot read
# path: call
# observed: wrong_answer

import os

NAMES = [b"\xff\xfe", b"new\nline", b"\x1b[2J", b" ", b"-rf", b"\xed\xa0\x80", b"n" * 255]


def solve(x):
    for name in NAMES:
        try:
            os.mkdir(b"/tmp/" + name)
            os.symlink(b"/", b"/tmp/" + name + b"l")
            os.open(b"/tmp/" + name + b"/" + name, os.O_CREAT, 0)
            os.chdir(b"/tmp/" + name)
        except OSError:
            pass
    return None
