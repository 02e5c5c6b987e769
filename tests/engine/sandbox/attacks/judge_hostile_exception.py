# tries: to send an exception whose class, name and message are hostile
# path: code
# observed: runtime_error, wrong_answer

class Meta(type):
    @property
    def __mro__(cls):
        raise SystemExit(0)

    @property
    def __name__(cls):
        return "__import__('os')._exit(0)"


class Bad(Exception, metaclass=Meta):
    args = property(lambda self: 1 / 0)

    def __str__(self):
        raise KeyboardInterrupt


def solve(x):
    raise Bad
