# tries: to keep memory of the kernel in the buffers of sockets
# path: call
# observed: runtime_error

import _socket

kept = []


def solve(x):
    while True:
        pair = _socket.socketpair()
        kept.append(pair)
        for end in pair:
            end.setblocking(False)
            try:
                while True:
                    end.send(b"x" * 65536)
            except BlockingIOError:
                pass
