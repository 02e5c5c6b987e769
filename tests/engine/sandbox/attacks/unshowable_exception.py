# tries: to break the report with an exception that cannot be shown
# path: call
# observed: runtime_error, memory_limit

class Bad(Exception):
    def __str__(self):
        raise MemoryError

    __repr__ = __str__


def solve(x):
    raise Bad()
