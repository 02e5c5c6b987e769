"""Server of an engine's metrics, at the address of `GROVE_ENGINE_METRICS`.

Invariants: without that variable nothing is imported or served. An address that others can reach
needs a token, which is read from a file, so that no engine has it in its environment. No failure
here ends an engine, or delays it.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config.deadlines import METRICS_READER
from engine.config.secrets import bare
from engine.events.log import EventReader, LogDamaged

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from engine.run.metrics import RunMetrics

logger = logging.getLogger(__name__)

ADDRESS, TOKEN_FILE = "GROVE_ENGINE_METRICS", "GROVE_ENGINE_METRICS_TOKEN_FILE"
SHORTEST_TOKEN = 16
_EVERY_SECONDS = 0.5


class MetricsError(ValueError):
    """Raised if the metrics cannot be served: the variable, its value, the remedy."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the metrics are served, and the token that a reader needs; empty for none."""

    host: str
    port: int
    token: str = ""


def address_of(environment: Mapping[str, str]) -> Address | None:
    """Returns where the metrics are to be served; None if they are off.

    Raises:
        MetricsError: a variable has a value that cannot be used.
    """
    if not (value := environment.get(ADDRESS, "").strip()):
        return None
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and int(port[:6]) < 65536
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        number = None
    if number is None or not is_port:
        remedy = "give an address by number and a port, as in 127.0.0.1:9102"
        raise MetricsError(f"{ADDRESS} = {value!r}: {remedy}")
    token = _token(environment.get(TOKEN_FILE, ""))
    if not token and not number.is_loopback:
        remedy = f"name the file of its readers' token in {TOKEN_FILE}, or serve 127.0.0.1:{port}"
        raise MetricsError(f"{ADDRESS} = {value!r}: {remedy}")
    return Address(host, int(port), token)


def _token(file: str) -> str:
    if not file:
        return ""
    try:
        token = bare(Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "its text is not UTF-8"
        remedy = f"name a file that this account can read ({cause})"
        raise MetricsError(f"{TOKEN_FILE} = {file!r}: {remedy}") from None
    if len(token) < SHORTEST_TOKEN or not token.isprintable():
        remedy = f"the file must contain one line of at least {SHORTEST_TOKEN} characters"
        raise MetricsError(f"{TOKEN_FILE} = {file!r}: {remedy}")
    return token


@contextmanager
def serving(run_dir: Path) -> Iterator[int | None]:
    """Serves the metrics of the run while the block runs; yields the port. Yields None if they are
    off, or cannot be served, which is logged in one line."""
    try:
        address = address_of(os.environ)
        server = _server(address, run_dir) if address else None
    except (MetricsError, OSError) as error:
        logger.warning("no metrics: %s", error)
        server = None
    if server is None:
        yield None
        return
    done = threading.Event()
    follower = threading.Thread(
        target=_follow, args=(run_dir, server.metrics, done), name="metrics-log", daemon=True
    )
    threading.Thread(target=server.http.serve_forever, name="metrics", daemon=True).start()
    follower.start()
    try:
        yield server.http.server_address[1]
    finally:
        done.set()
        server.http.shutdown()
        server.http.server_close()
        follower.join()


@dataclass(frozen=True, slots=True)
class _Serving:
    http: WSGIServer
    metrics: RunMetrics


def _follow(run_dir: Path, metrics: RunMetrics, done: threading.Event) -> None:
    """Reads the log, as the site does: the trainer knows nothing of its observers."""
    reader = EventReader(run_dir)
    try:
        while True:
            while events := reader.read():
                for event in events:
                    metrics.observe(event)
            if done.wait(_EVERY_SECONDS):
                return
    except (LogDamaged, OSError) as error:
        logger.warning("metrics stand still: %s", error)


def _server(address: Address, run_dir: Path) -> _Serving:
    """Binds the address. Raises `MetricsError` if it cannot be bound."""
    import socket
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    from prometheus_client import make_wsgi_app
    from prometheus_client.exposition import ThreadingWSGIServer

    from engine.run.metrics import RunMetrics

    class Handler(WSGIRequestHandler):
        def setup(self) -> None:
            super().setup()
            self.connection.settimeout(METRICS_READER.seconds)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs no request: there is one every few seconds."""

    class Server(ThreadingWSGIServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

        def handle_error(self, request: Any, client_address: Any) -> None:
            logger.debug("a reader of metrics left", exc_info=True)

    metrics = RunMetrics(run_dir.name)
    exposition = make_wsgi_app(metrics.registry)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "")
        if environ["PATH_INFO"] != "/metrics" or not _may_read(given, address.token):
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"Not found\n"]
        return exposition(environ, start)

    try:
        http = make_server(address.host, address.port, answer, Server, Handler)
    except OSError as error:
        remedy = f"{error.strerror}; another engine may have it: give each engine a port"
        raise MetricsError(f"{ADDRESS} = {address.host}:{address.port}: {remedy}") from None
    return _Serving(http, metrics)


def _may_read(authorization: str, token: str) -> bool:
    """Whether this value of an Authorization header has the token; everybody may without one."""
    if not token:
        return True
    scheme, _, given = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(
        given.strip().encode(), token.encode()
    )
