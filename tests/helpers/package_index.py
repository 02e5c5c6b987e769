"""A package index on this machine (PEP 503) that serves wheels made by a test."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.helpers.waiting import patience


def make_wheel(folder: Path, distribution: str, members: dict[str, bytes]) -> Path:
    """Writes `distribution` 1.0 with the members, and returns its file."""
    name = distribution.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


class Index(ThreadingHTTPServer):
    """Serves `folder`; `requested` lists the files that were sent, in order."""

    daemon_threads = True

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.requested: list[str] = []
        self.stall_after: int | None = None
        """Bytes of a wheel after which no more are sent until `go_on`; None sends all."""
        self.stalling: set[str] | None = None
        """Wheels of which this is true; None: all."""
        self.stalled, self.go_on = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"

    def environment(self) -> dict[str, str]:
        """Returns the variables with which pip uses this index alone."""
        return {**pip_environment(), "PIP_INDEX_URL": self.url}


def pip_environment() -> dict[str, str]:
    """Returns the variables with which pip ignores this machine's settings and tries no more than
    twice; an index that answers late, as on a busy machine, has a minute for each answer."""
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_RETRIES": "1",
        "PIP_DEFAULT_TIMEOUT": str(round(60 * patience())),
        "no_proxy": "127.0.0.1",
    }


class _Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        kind, _, name = self.path.strip("/").partition("/")
        if kind == "simple":
            self._send_links(name.strip("/"))
        elif kind == "files" and (path := self.server.folder / name).is_file():
            self.server.requested.append(name)
            self._send(path.read_bytes(), "application/octet-stream")
        else:
            self.send_error(404)

    def _send_links(self, distribution: str) -> None:
        prefix = distribution.replace("-", "_") + "-"
        paths = [path for path in self.server.folder.glob("*.whl") if path.name.startswith(prefix)]
        if not paths:
            self.send_error(404)
            return
        links = (f'<a href="/files/{path.name}">{path.name}</a>' for path in paths)
        self._send(
            f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode(), "text/html"
        )

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        stall = self.server.stall_after
        if kind != "text/html" and stall is not None and self._stalls():
            self.wfile.write(content[:stall])
            self.wfile.flush()
            self.server.stalled.set()
            self.server.go_on.wait(60 * patience())
            content = content[stall:]
        try:
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):  # the client was killed
            self.close_connection = True

    def _stalls(self) -> bool:
        stalling = self.server.stalling
        return stalling is None or self.path.rpartition("/")[2] in stalling

    def log_message(self, format: str, *arguments: object) -> None:
        """Keeps the output of tests clean."""


@contextmanager
def package_index(folder: Path) -> Iterator[Index]:
    """Serves the wheels of `folder` in the block."""
    with Index(folder) as index:
        thread = threading.Thread(target=index.serve_forever, args=(0.02,), name="index")
        thread.start()
        try:
            yield index
        finally:
            index.go_on.set()
            index.shutdown()
            thread.join()
