# tries: to reach a server of the host, by name and by number
# path: call
# observed: wrong_answer

import socket


def solve(x):
    for host in ("127.0.0.1", "localhost", "::1", "169.254.169.254", "10.0.0.1"):
        try:
            socket.create_connection((host, @PORT@), 0.2)
            return sorted(x)
        except OSError:
            pass
    return None
