"""Tests of structured logs: ids of requests, and lines of web and engine as JSON."""

from __future__ import annotations

import json
import logging
import logging.config
import os
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import settings

from engine.config.log_lines import JsonLines, log_format
from tests.helpers.site import Server
from tests.helpers.waiting import patience
from tests.webapp.telemetry.stream_server import a_server
from workers.runs.engine_environment import engine_environment
from workers.runs.engine_process import LOG_FILE, first_cause

SECRET = "3fa85f64-5717-4562-b3fc-2c963f66afa6"


@pytest.fixture(scope="module")
def address(django_db_setup):
    with a_server() as served:
        yield f"http://127.0.0.1:{served.port}"


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/runs", "/sign-in/", "/nowhere"])
def test_a_client_s_usable_id_is_returned(db, address, path):
    answer = httpx.get(
        f"{address}{path}", headers={"X-Request-ID": "from.proxy_1-a"}, timeout=60 * patience()
    )
    assert answer.headers.get_list("X-Request-ID") == ["from.proxy_1-a"]


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, 'a"}', "é", "a;b", "${jndi:x}"])
def test_any_other_id_is_replaced(db, address, given):
    headers = [(b"X-Request-ID", given.encode())]
    answer = httpx.get(f"{address}/healthz", headers=headers, timeout=60 * patience())
    (name,) = answer.headers.get_list("X-Request-ID")
    assert name != given and len(name) == 32 and name.isalnum()
    assert httpx.get(f"{address}/healthz", timeout=60 * patience()).headers["X-Request-ID"] != name


def test_a_refused_body_has_an_id_too(db, address):
    opened = HTTPConnection(urlsplit(address).netloc, timeout=60 * patience())
    opened.putrequest("POST", "/api/v1/experiments")
    opened.putheader("Content-Length", str(10**12))
    opened.endheaders()
    answer = opened.getresponse()
    assert answer.status == 413 and answer.getheader("X-Request-ID")
    opened.close()


@pytest.mark.large
@pytest.mark.service
def test_a_web_process_logs_requests_as_json_without_their_secrets(postgres_url, tmp_path):
    log = tmp_path / "web.log"
    server = Server(tmp_path / "var", postgres_url, {"GROVE_LOG_FORMAT": "json"}, log)
    server.start()
    try:
        path = f"/shared/{SECRET}/?token={SECRET}"
        httpx.get(f"{server.url}{path}", headers={"X-Request-ID": "mine"}, timeout=60 * patience())
        page = f"{server.url}/runs/{SECRET}/"
        httpx.get(page, headers={"X-Request-ID": "of-a-run"}, timeout=60 * patience())
    finally:
        server.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (mine,) = (line for line in lines if line.get("request_id") == "mine")
    assert mine["method"] == "GET" and mine["route"].startswith("/shared/<")
    assert mine["status"] >= 300 and mine["seconds"] >= 0 and mine["level"] == "INFO"
    assert not any(SECRET in json.dumps(line) for line in lines if line is not of_run(lines))
    assert of_run(lines)["run_id"] == SECRET


def of_run(lines):
    return next(line for line in lines if line.get("request_id") == "of-a-run")


ENGINE = """
import logging
from engine.config.log_lines import configure_engine
configure_engine("run-1")
try:
    raise ValueError("one\\ntwo")
except ValueError:
    logging.getLogger("engine.health").exception("a rule fails")
"""


def test_an_engine_s_lines_name_its_run_and_are_never_its_cause_of_death(tmp_path, settings):
    settings.LOG_FORMAT = "json"
    done = subprocess.run(
        [sys.executable, "-c", ENGINE], env=engine_environment(), capture_output=True, text=True,
        timeout=120 * patience(),
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    record = json.loads(line)
    assert record["run_id"] == "run-1" and record["level"] == "ERROR"
    assert record["error"].endswith("ValueError: one\ntwo")
    death = "Traceback (most recent call last):\n  File x\nMemoryError: all\n"
    (tmp_path / LOG_FILE).write_text(f"{death}{line}\n")
    assert first_cause(tmp_path) == "MemoryError: all"
    (tmp_path / LOG_FILE).write_text(f"out of memory\n{line}\n")
    assert first_cause(tmp_path) == "out of memory"
    (tmp_path / LOG_FILE).write_text(f"{line}\n")
    assert first_cause(tmp_path) == "the engine ended without output"


def test_text_is_the_default_and_another_format_is_refused(tmp_path):
    assert log_format({}) == log_format({"GROVE_LOG_FORMAT": ""}) == "text"
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], capture_output=True, text=True,
        timeout=120 * patience(),
        env={**os.environ, "GROVE_LOG_FORMAT": "xml", "GROVE_VAR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip() == "GROVE_LOG_FORMAT = 'xml': give text or json"


def test_a_line_is_one_line_whatever_is_logged():
    record = logging.LogRecord("a", logging.INFO, "f", 1, "one\n%s\u2028", ("two\r",), None)
    record.run_id, record.odd, record.level = "r", {1, 2}, "not the level"
    line = JsonLines({"kind": "x"}).format(record)
    assert line.isascii() and line.isprintable()
    found = json.loads(line)
    assert found["message"] == "one\ntwo\r\u2028" and found["level"] == "INFO"
    assert (found["run_id"], found["kind"], found["odd"]) == ("r", "x", "{1, 2}")
    assert set(found) == {"time", "level", "logger", "message", "run_id", "kind", "odd"}


def test_a_line_of_text_steers_no_terminal():
    formatter = logging.config.DictConfigurator(settings.LOGGING).configure_formatter(
        settings.LOGGING["formatters"]["text"]
    )
    record = logging.makeLogRecord(
        {"name": "grove", "msg": "died: %s", "args": ("\x1b[2J\u202ea\tb",)}
    )
    assert formatter.format(record).endswith(r"grove: died: \x1b[2J\u202ea" + "\tb")
