# tries: to read the project that judges it, its tests and its data
# path: call
# observed: wrong_answer

import os


def solve(x):
    for path in ("@TESTS@", "@TESTS@/test_attacks.py", "@ENGINE@", "@ENGINE@/sandbox/zygote.py"):
        try:
            os.listdir(path) if not path.endswith(".py") else open(path).read()
            return sorted(x)
        except OSError:
            pass
    return None
