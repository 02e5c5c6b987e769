# tries: to open a socket of any kind
# path: call
# observed: wrong_answer

import socket


def solve(x):
    for family in range(46):
        for kind in (1, 2, 3, 5):
            try:
                socket.socket(family, kind)
                return sorted(x)
            except OSError:
                pass
    return None
