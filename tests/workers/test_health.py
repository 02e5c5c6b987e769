"""Tests of the probe of the web service on this machine."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from workers.local.health import health


@pytest.fixture
def web():
    """Answers with the status in `status`; `hosts` are those that it was asked as."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.hosts.append(self.headers["Host"])
            self.send_response(self.server.status)
            self.send_header("Location", "https://127.0.0.1:9/healthz")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.hosts, server.status = [], 200
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("status", [200, 301, 400, 503])
def test_it_is_the_status_whatever_proxy_there_is(web, status, settings, monkeypatch):
    for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    settings.ALLOWED_HOSTS, web.status = [".example.org"], status
    assert health(web.server_port, 30.0) == status
    assert web.hosts == ["example.org"]


def test_a_port_on_which_nothing_answers_has_none(web):
    port = web.server_port
    web.shutdown()
    web.server_close()
    assert health(port, 30.0) is None
