"""Fixtures of the tests that run static/js in a real Chromium."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path

import pytest

from tests.helpers.chromium import a_context, chromium

ROOT = Path(__file__).resolve().parents[2]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def module_page():
    """A blank page of a server that serves this repository's files."""
    handler = functools.partial(_Quiet, directory=str(ROOT))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with chromium() as browser:
        page = a_context(browser).new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/static/js/forest/layout.js")
        yield page
    server.shutdown()
    server.server_close()
