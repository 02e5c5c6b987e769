"""A local HTTP server that receives webhooks, well-behaved or hostile by the address's path."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """`url` plus a path: `/ok` takes the notice, `/500`, `/403` and `/410` answer so, `/inside`
    redirects to `/ok`, `/huge` sends 10 MB, `/drip` a byte of its head now and then, `/hang`
    nothing, `/close` closes the connection."""

    url: str
    taken: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """(path, headers in lower case, body) of each request."""
    ended: threading.Event = field(default_factory=threading.Event)

    def bodies(self, path: str = "/ok") -> list[bytes]:
        return [body for at, _, body in self.taken if at == path]


@contextmanager
def a_receiver() -> Iterator[Receiver]:
    """Serves until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.taken.append((self.path, headers, body))
            with contextlib.suppress(OSError):  # the client had enough
                _respond(self, receiver)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.ended.set()
        server.shutdown()
        server.server_close()


def _respond(request: BaseHTTPRequestHandler, receiver: Receiver) -> None:
    match request.path:
        case "/hang":
            receiver.ended.wait(60)
        case "/close":
            request.close_connection = True
        case "/drip":
            for letter in b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 600:
                request.wfile.write(bytes([letter]))
                if receiver.ended.wait(0.05):
                    return
        case "/huge":
            request.send_response(200)
            request.end_headers()
            for _ in range(10):
                request.wfile.write(b"x" * 1_000_000)
                time.sleep(0.01)
        case "/inside":
            request.send_response(302)
            request.send_header("Location", f"{receiver.url}/ok")
            request.end_headers()
        case path:
            status = int(path[1:]) if path[1:].isdigit() else 200
            request.send_response(status)
            request.end_headers()
            request.wfile.write(b"ok" if status == 200 else f"answer {status}".encode())
