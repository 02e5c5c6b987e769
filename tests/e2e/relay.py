"""A TCP relay between a browser and the site that breaks connections where a test says.

Invariant: `sent` counts every byte that came from the browser; at each of `breaks`, in order, all
open connections are reset, as by a network failure. New ones are accepted again at once, or, with
`stays_down`, after `heal`.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading

from tests.helpers.waiting import patience

CHUNK = 1 << 16
RESET = struct.pack("ii", 1, 0)  # linger 0: close() sends a reset instead of a FIN


class Relay:
    """with Relay(port, breaks=(5_000_000,)) as relay: browse relay.url."""

    def __init__(self, port: int, breaks: tuple[int, ...], stays_down: bool = False):
        self._port = port
        self._stays_down = stays_down
        self._up = threading.Event()
        self._up.set()
        self._breaks = list(breaks)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers: dict[socket.socket, socket.socket] = {}
        self._browsers: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.sent = 0
        self.broken = 0
        """Number of times that connections were broken."""

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(10 * patience())
        self._reset_all()
        self._listener.close()
        self._selector.close()
        assert not self._thread.is_alive()

    def heal(self) -> None:
        """Accepts connections again."""
        self._up.set()

    def _work(self) -> None:
        while not self._ending.is_set():
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self._listener:
                    self._connect()
                elif key.fileobj in self._peers:
                    self._forward(key.fileobj)

    def _connect(self) -> None:
        browser, _ = self._listener.accept()
        if not self._up.is_set():
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            browser.close()
            return
        site = socket.create_connection(("127.0.0.1", self._port))
        self._browsers.add(browser)
        for one, other in ((browser, site), (site, browser)):
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, one: socket.socket) -> None:
        other = self._peers[one]
        try:
            data = one.recv(CHUNK)
            if data:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._close(one)
        elif one in self._browsers:
            self.sent += len(data)
            if self._breaks and self.sent >= self._breaks[0]:
                self._breaks.pop(0)
                if self._stays_down:
                    self._up.clear()
                self._reset_all()
                self.broken += 1

    def _reset_all(self) -> None:
        for browser in list(self._browsers):
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self._close(browser)

    def _close(self, one: socket.socket) -> None:
        for end in (one, self._peers.get(one)):
            if end in self._peers:
                del self._peers[end]
                self._browsers.discard(end)
                self._selector.unregister(end)
                end.close()
