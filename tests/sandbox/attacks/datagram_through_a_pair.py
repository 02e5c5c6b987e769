# tries: to send datagrams to the host through a pair of sockets
# path: call
# observed: wrong_answer

import ctypes
import socket


def solve(x):
    try:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.sendto(b"x", "/dev/log")
        return sorted(x)
    except OSError:
        pass
    one, other = socket.socketpair()
    for send in (
        lambda: one.sendto(b"x", "/dev/log"), lambda: one.connect("\0grove-test"),
        lambda: one.bind("\0x"), lambda: one.sendmsg([b"x"]),
        lambda: socket.send_fds(one, [b"x"], [0]),
    ):
        try:
            send()
            return sorted(x)
        except OSError:
            pass
    return None
