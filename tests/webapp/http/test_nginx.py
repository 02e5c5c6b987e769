"""Tests of the nginx example in docs/operations.md, in front of a real web process.

Without nginx they are skipped, except where the whole suite must run (CI).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from django.conf import settings
from django.db import connection
from websockets.sync.client import connect

from tests.helpers.builders import a_cast, a_held_run, a_token, some_events
from tests.helpers.ports import a_port, port_of
from tests.helpers.waiting import eventually, patience
from webapp.accounts.models import Scope
from webapp.telemetry.ingest.ingest import ingest

pytestmark = pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("openssl")) and not os.environ.get("CI"),
    reason="nginx is not installed (apt-get install nginx openssl)",
)
NAME = "grove.example.org"
KEPT_SECONDS = 50
"""For idle connections: less than the 60 that nginx gives headers without the example's limit."""
SECONDS = 30 * patience()
VISITOR, CLAIMED = "127.0.0.2", "192.0.2.77"
HEALTH = f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()


def example() -> str:
    """The configuration as printed in the document."""
    text = (settings.BASE_DIR / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    return block


def configured(folder: Path, upstream: int, port: int, **changes: str) -> Path:
    """The example as a whole configuration, with a certificate and ports of the test's own."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
               "-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={NAME}"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    text = example()
    certificates = f"ssl_certificate {certificate}; ssl_certificate_key {key};"
    parts = {"# ssl_certificate ...": certificates, "listen 443 ssl": f"listen {port} ssl",
             "http://10.0.0.7:8000": f"http://127.0.0.1:{upstream}", **changes}  # fmt: skip
    for part, ours in parts.items():
        assert part in text, f"the example has no {part}"
        text = text.replace(part, ours)
    temporary = "".join(
        f"{what}_temp_path {folder}/{what};\n"
        for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Root's files are closed to the account that nginx would use.
    account = "user root;\n" if os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log info;\n{account}"
        f"events {{}}\nhttp {{\naccess_log off;\nkeepalive_timeout {KEPT_SECONDS};\n"
        f"{temporary}{text}}}\n"
    )
    folder.chmod(0o755)
    return file


def test_nginx_takes_the_example(tmp_path):
    file = configured(tmp_path, 8000, a_port())
    done = subprocess.run(["nginx", "-t", "-c", str(file)], capture_output=True, text=True)
    assert done.returncode == 0 and "warn" not in done.stderr, done.stderr


@dataclass(frozen=True)
class Site:
    """Grove behind nginx."""

    port: int
    direct: int
    folder: Path
    """Of nginx."""

    @property
    def tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def client(self) -> httpx.Client:
        """A visitor, from an address that is not the proxy's."""
        transport = httpx.HTTPTransport(verify=self.tls, local_address=VISITOR)
        address = f"https://127.0.0.1:{self.port}"
        return httpx.Client(
            base_url=address, transport=transport, headers={"Host": NAME}, timeout=SECONDS
        )


@pytest.fixture
def site(transactional_db, tmp_path):
    parts, port, folder = connection.settings_dict, a_port(), tmp_path / "nginx"
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgresql://{parts['USER']}@/{parts['NAME']}?host={parts['HOST']}",
        "GROVE_VAR": str(tmp_path / "var"),
        "GROVE_SECRET_KEY": settings.SECRET_KEY,
        "GROVE_HTTPS": "1",
        "GROVE_ALLOWED_HOSTS": NAME,
        "GROVE_TRUSTED_PROXIES": "127.0.0.1",
    }
    web = [sys.executable, "manage.py", "serve_web", "--host", "127.0.0.1", "--port", "0"]
    folder.mkdir()
    changes = {"client_header_timeout 10s": "client_header_timeout 2s"}
    with ExitStack() as stack:
        direct = port_of(started(stack, web, env=environment, cwd=settings.BASE_DIR))
        file = configured(folder, direct, port, **changes)
        proxy = started(stack, ["nginx", "-c", str(file)])
        made = Site(port, direct, folder)

        def answers():
            assert proxy.poll() is None, (folder / "error.log").read_text()
            return _answers(made)

        eventually(answers, "nginx and the web process to answer")
        yield made


def started(stack, command, **options):
    """A process that ends with the stack."""
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, **options))
    stack.callback(process.wait, SECONDS)
    stack.callback(process.terminate)
    return process


def _answers(site: Site) -> bool:
    try:
        with site.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.HTTPError:
        return False


def test_the_site_works_behind_it(site):
    cast = a_cast()
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, 3))
    scopes = Scope.RUNS_READ, Scope.DATASETS_WRITE
    token = {"Authorization": f"Bearer {a_token(cast.bob, cast.project, *scopes)}"}
    with site.client() as client:
        page = client.get("/sign-in/")
        assert page.status_code == 200 and "Strict-Transport-Security" in page.headers
        assert "Secure" in page.headers["Set-Cookie"]
        _guesses_are_of_the_visitor(client)
        _uploads_in_whole_chunks(client, cast, token)
        _streams_at_once(client, run, token)
        _opens_a_websocket(site, run, token)
        _closes_who_sends_no_headers(site)
    assert httpx.get(f"http://127.0.0.1:{site.direct}/", headers={"Host": NAME}).status_code == 301


def _guesses_are_of_the_visitor(client):
    claims = {
        "X-Forwarded-For": CLAIMED,
        "X-Forwarded-Proto": "http",
        "Forwarded": f"for={CLAIMED}",
    }
    assert not _guessers()
    response = client.get("/api/v1/runs", headers={"Authorization": "Bearer grove_wrong", **claims})
    assert response.status_code == 401, "and not sent on to https"
    assert _guessers() == {f"guesses:address {VISITOR}"}


def _guessers() -> set[str]:
    """Addresses with a wrong token or link."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT caller FROM accounts_allowance WHERE caller LIKE 'guesses:%'")
        return {caller for (caller,) in cursor.fetchall()}


def _uploads_in_whole_chunks(client, cast, token):
    content = os.urandom(8 << 20)
    new = {"project": cast.project.pk, "kind": "dataset", "name": "a.jsonl", "size": len(content)}
    made = client.post("/api/v1/uploads", json=new, headers=token)
    assert made.status_code == 201, made.text
    upload = made.json()["id"]
    octets = {"Content-Type": "application/octet-stream", "Upload-Offset": "0", **token}
    response = client.patch(f"/api/v1/uploads/{upload}", content=content, headers=octets)
    assert (response.status_code, response.json()["offset"]) == (200, len(content))
    refused = client.patch(f"/api/v1/uploads/{upload}", content=content * 2, headers=octets)
    assert refused.status_code == 413


def _streams_at_once(client, run, token):
    headers = {**token, "Accept": "text/event-stream"}
    # No event follows these: if nginx kept them back for more, they would not come at all.
    with client.stream("GET", f"/api/v1/runs/{run.pk}/events", headers=headers) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "id: 1" and json.loads(next(lines).removeprefix("data: "))[0] == 1


def _opens_a_websocket(site, run, token):
    plain = socket.create_connection(("127.0.0.1", site.port), SECONDS)
    with connect(
        f"wss://{NAME}:{site.port}/stream", sock=plain, ssl=site.tls,
        subprotocols=["grove.v1"], additional_headers=token,
    ) as opened:  # fmt: skip
        opened.send(json.dumps({"type": "hello", "v": 1}))
        assert json.loads(opened.recv(timeout=SECONDS))["type"] == "welcome"
        opened.send(json.dumps({"type": "sub", "sid": 1, "run": str(run.pk), "after": 0}))
        assert json.loads(opened.recv(timeout=SECONDS))["type"] == "subscribed"


def _closes_who_sends_no_headers(site):
    """By the limit of the example: nginx's own is longer than it keeps an idle connection, and the
    idle one is older."""
    with _tls(site) as idle, _tls(site) as slow:
        idle.sendall(HEALTH)
        assert b"200 OK" in idle.recv(10_000)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""
        idle.sendall(HEALTH)
        assert b"200 OK" in idle.recv(10_000)
    told = (site.folder / "error.log").read_text()
    assert "client timed out" in told and "while reading client request headers" in told


def _tls(site):
    # Longer than nginx keeps any connection.
    plain = socket.create_connection(("127.0.0.1", site.port), max(SECONDS, 2 * KEPT_SECONDS))
    return site.tls.wrap_socket(plain, server_hostname=NAME)
