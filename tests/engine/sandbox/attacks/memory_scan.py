# tries: to find the text of an expected answer, or an earlier program, in raw memory
# path: call
# observed: wrong_answer, killed, runtime_error

import ctypes

# The needle without its last letter: whole, it would find itself.
NEEDLES = ((b"canary_of_the_expected_answe", b"r"), (b"canary_of_an_earlier_progra", b"m"))


def holds(data):
    return any(data[at + len(n) :][:1] == c for n, c in NEEDLES if (at := data.rfind(n)) >= 0)


def find():
    try:
        maps = open("/proc/self/maps").read().split("\n")
    except OSError:
        anchor = id(object())
        spans = [(anchor & ~0xFFF, 1 << 20)]
    else:
        spans = []
        for line in maps:
            if " rw" in line:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                spans.append((start, end - start))
    for start, length in spans:
        data = ctypes.string_at(start, length)
        if holds(data):
            return True
    return False


def solve(x):
    return sorted(x) if find() else None
