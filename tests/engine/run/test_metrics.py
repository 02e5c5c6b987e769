"""Tests of an engine's metrics: what they say of a run's log, where they are served, to whom."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.events.log import FILE_NAME
from engine.run.metrics_server import ADDRESS, TOKEN_FILE, MetricsError, address_of, serving
from tests.helpers.sample_log import Sample, sample_events
from tests.helpers.waiting import eventually, patience

SAMPLE = Sample(seed=3, steps=2, trees=2, nodes=3)
ANYWHERE = "127.0.0.1:0"


@pytest.fixture
def events(tmp_path):
    events = list(sample_events(SAMPLE))
    lines = [msgspec.json.encode(event) + b"\n" for event in events]
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines))
    return events


def exposed(port, headers=(), path="/metrics"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=dict(headers))
    with urllib.request.urlopen(request, timeout=30 * patience()) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_are_those_of_the_run_s_log(tmp_path, events, monkeypatch):
    monkeypatch.setenv(ADDRESS, ANYWHERE)
    with serving(tmp_path) as port:
        shown = eventually(
            lambda: (now := exposed(port)).get(("grove_engine_state", "finished")) and now,
            "the whole log",
        )
    ends = [event.payload for event in events if event.kind == "step.end"]
    nodes = [event.payload for event in events if event.kind == "node.close"]
    update = [event.payload for event in events if event.kind == "agent.update"][-1]
    assert shown["grove_engine_info", tmp_path.name] == 1
    assert shown["grove_engine_step",] == len(ends) == shown["grove_engine_step_seconds_count",]
    assert shown["grove_engine_tokens_total",] == sum(one["tokens"] for one in nodes) > 0
    for verdict in {one["verdict"] for one in nodes}:
        count = sum(one["verdict"] == verdict for one in nodes)
        assert shown["grove_engine_nodes_total", verdict] == count
    assert ends[0]["phases"]
    for phase in ends[0]["phases"]:
        seconds = sum(one["phases"][phase] for one in ends)
        assert shown["grove_engine_phase_seconds_total", phase] == pytest.approx(seconds)
    assert shown["grove_engine_reward",] == ends[-1]["reward"]
    assert shown["grove_engine_update_loss", update["agent"]] == update["loss"]
    assert shown["grove_engine_event_timestamp_seconds",] == pytest.approx(events[-1].time)
    states = [value for (name, *_), value in shown.items() if name == "grove_engine_state"]
    assert sum(states) == 1


def test_without_an_address_nothing_is_served_or_imported(tmp_path):
    program = (
        "import sys; from pathlib import Path; from engine.run.metrics_server import serving\n"
        f"with serving(Path({str(tmp_path)!r})) as port: print(port)\n"
        "print([name for name in sys.modules if name.startswith('prometheus')])"
    )
    done = subprocess.run([sys.executable, "-c", program], env={}, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["None", "[]"], done.stderr


def test_with_a_token_only_its_holders_read(tmp_path, events, monkeypatch):
    token = tmp_path / "token"
    token.write_text("a-token-of-sixteen\n")
    monkeypatch.setenv(ADDRESS, ANYWHERE)
    monkeypatch.setenv(TOKEN_FILE, str(token))
    with serving(tmp_path) as port:
        for headers in ({}, {"Authorization": "Bearer another-long-token"}):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                exposed(port, headers)
        bearer = {"Authorization": "Bearer a-token-of-sixteen"}
        assert ("grove_engine_info", tmp_path.name) in exposed(port, bearer)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            exposed(port, bearer, "/")


@pytest.mark.parametrize(
    ("address", "file", "reason"),
    [
        ("9102", "", "'9102': give an address by number and a port"),
        ("127.0.0.1:99999", "", "give an address by number and a port"),
        ("localhost:9102", "", "give an address by number and a port"),
        ("0.0.0.0:9102", "", f"name the file of its readers' token in {TOKEN_FILE}"),
        ("127.0.0.1:9102", "/nowhere/token", "name a file that this account can read"),
        ("127.0.0.1:9102", "/dev/null", "one line of at least 16 characters"),
    ],
)
def test_an_unusable_address_or_token_is_named_and_nothing_is_served(
    tmp_path, monkeypatch, caplog, address, file, reason
):
    given = {ADDRESS: address, TOKEN_FILE: file}
    with pytest.raises(MetricsError, match=reason):
        address_of(given)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING), serving(tmp_path) as port:
        assert port is None
    assert reason in caplog.text and caplog.text.count("no metrics") == 1


def test_an_engine_whose_port_is_taken_goes_on_without(tmp_path, monkeypatch, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv(ADDRESS, f"127.0.0.1:{taken.getsockname()[1]}")
        with caplog.at_level(logging.WARNING), serving(tmp_path) as port:
            assert port is None
    assert "give each engine a port" in caplog.text


def test_a_damaged_log_stops_the_figures_and_not_the_server(tmp_path, events, monkeypatch, caplog):
    with (tmp_path / FILE_NAME).open("ab") as log:
        log.write(b"no event\n")
    monkeypatch.setenv(ADDRESS, ANYWHERE)
    with caplog.at_level(logging.WARNING), serving(tmp_path) as port:
        eventually(lambda: "metrics stand still" in caplog.text, "the damage")
        assert exposed(port)["grove_engine_step",] == SAMPLE.steps
