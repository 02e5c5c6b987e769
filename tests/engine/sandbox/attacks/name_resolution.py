# tries: to carry data out through the resolver
# path: call
# observed: runtime_error

import socket


def solve(x):
    return socket.gethostbyname('answer.example.org')
