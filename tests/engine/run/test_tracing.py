"""Tests of traces: off by default, refused in one line, and never waited for."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys

import pytest

from engine.config import tracing
from engine.run.exit_status import ExitCode
from engine.run.spans import ended, phase_span, run_span, step_span, submitted
from tests.helpers.collector import a_collector, needs_opentelemetry

ON = "OTEL_EXPORTER_OTLP_ENDPOINT"
GRPC = {ON: "http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
USED = """
import os, sys
{before}
from engine.run.spans import run_span, step_span, phase_span, submitted, ended
from engine.config import tracing
tracing.start("grove-engine")
with run_span("train", "r"), step_span(1), phase_span("learn"):
    ended([submitted(object(), "learn", "learn")])
    assert tracing.child_environment() == {{}}
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


ALL = """
os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.config.settings"
import engine.cli.train, engine.training.run, workers.runs.engine_process
"""


def used(before, **variables):
    """A process that does this, and then comes by every place of a span."""
    program = USED.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("before", ["", pytest.param(ALL, marks=pytest.mark.large)])
def test_without_a_collector_nothing_of_opentelemetry_is_imported(before):
    done = used(before)
    assert done.stdout == "[]\n" and done.stderr == ""


def test_without_the_package_one_line_names_the_remedy_and_the_process_goes_on():
    done = used("sys.modules['opentelemetry'] = None", **{ON: "http://127.0.0.1:4318"})
    assert set(done.stderr.splitlines()) == {
        "no traces: opentelemetry is not installed: pip install 'grove-rl[otel]', "
        "or unset OTEL_EXPORTER_OTLP_ENDPOINT"
    }


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ""),
        ({ON: " "}, ""),
        ({ON: "http://c:4318"}, "http://c:4318"),
        ({ON: "http://c:4318", tracing.ENDPOINTS[0]: "https://t/v1/traces"}, "https://t/v1/traces"),
        ({ON: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, ""),
        ({ON: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({ON: "me:secret@c:4318"}, f"{ON} = 'c:4318': give an address"),
        ({ON: "http://c:4318", "OTEL_TRACES_EXPORTER": "zipkin"}, "'zipkin': give otlp or none"),
        (GRPC, "OTEL_EXPORTER_OTLP_PROTOCOL = 'grpc': give http/protobuf"),
    ],
)
def test_standard_variables_say_whether_and_where(environment, expected):
    try:
        assert tracing.endpoint(environment) == expected
    except tracing.TracingError as error:
        assert expected and expected in str(error) and "secret" not in str(error)


@pytest.fixture
def collector(monkeypatch):
    with a_collector() as collector:
        monkeypatch.setenv(ON, collector.url)
        yield collector
        tracing.stop()


def test_a_phase_is_one_span_and_holds_its_calls_and_inner_phases(collector, monkeypatch):
    monkeypatch.setenv(tracing.PARENT, f"00-{'a' * 32}-{'b' * 16}-01")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic secret")
    with pytest.raises(ValueError, match="went wrong"), run_span("train", "run-1"):
        assert not {tracing.PARENT, *tracing.HEADERS} & os.environ.keys()
        with step_span(1):
            submitted("answer of a", "generate", "answer", agents="oak")
            for _ in range(3):
                with phase_span("generate"):
                    pass
            ended(["answer of a", "a call that nobody traced"])
            submitted("update", "learn", "learn", agent="oak")
            with phase_span("validate"), phase_span("generate"):
                submitted("answer of b", "generate", "answer")
                ended(["answer of b"], "RayActorError")
        with step_span(2), phase_span("learn"):
            ended(["update"])
            submitted("an answer nobody waits for", "generate", "answer")
            raise ValueError("a secret prompt went wrong")
    spans = {(one.name, one.attributes.get("grove.step")): one for one in collector.spans()}
    calls = [one for one in collector.spans() if one.name == "answer"]
    run = spans["train", None]
    assert {one.trace for one in collector.spans()} == {"a" * 32} and run.parent == "b" * 16
    assert run.service == "grove-engine" and run.attributes["grove.run.id"] == "run-1"
    assert collector.tree() == {
        "": ["train"],
        "train": ["step"],
        "step": ["generate", "learn", "validate"],
        "generate": ["answer"],
        "learn": ["generate", "learn"],
        "validate": ["generate"],
    }
    assert [one.attributes.get("error.type", "") for one in calls] == [
        "", "RayActorError", "abandoned",
    ]  # fmt: skip
    assert calls[0].attributes["grove.agents"] == "oak"
    assert spans["step", 2].is_error and spans["step", 2].attributes["error.type"] == "ValueError"
    assert not spans["step", 1].is_error
    assert not any(b"secret" in body for _, _, body in collector.receiver.taken)
    assert all(
        headers["authorization"] == "Basic secret" for _, headers, _ in collector.receiver.taken
    )
    assert len([one for one in collector.spans() if one.name == "generate"]) == 3


def test_workers_and_engines_of_a_run_share_a_trace(collector):
    tracing.start("grove-worker")
    for _ in range(2):
        with tracing.span("run", {"grove.run.id": "r"}, trace_of="r"):
            os.environ |= tracing.child_environment()
            kept, tracing._exporting = tracing._exporting, None  # the engine is another process
            with run_span("train", "r"):
                pass
            tracing._exporting = kept
    tracing.stop()
    spans = collector.spans()
    assert len({one.trace for one in spans}) == 1 and len(spans) == 4
    assert collector.tree() == {"": ["run"], "run": ["train"]}
    assert {one.service for one in spans} == {"grove-worker", "grove-engine"}


@pytest.mark.parametrize("code", ExitCode)
def test_a_run_that_failed_or_was_refused_is_an_error_of_its_span(collector, code):
    with run_span("train", "r") as noted:
        assert noted(code) is code
    (run,) = collector.spans()
    failed = code in (ExitCode.FAILED, ExitCode.REFUSED)
    assert run.is_error is failed
    assert run.attributes.get("error.type", "") == (code.name.lower() if failed else "")


@pytest.mark.parametrize("how", ["gone", "hanging"])
def test_a_collector_that_is_gone_or_hangs_delays_nothing(monkeypatch, caplog, how):
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.5)
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")
    # A wait for the collector would outlast the test.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
    needs_opentelemetry()
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections, answers none
        monkeypatch.setenv(ON, f"http://127.0.0.1:{server.getsockname()[1]}")
        if how == "gone":
            server.close()
        with caplog.at_level(logging.WARNING), run_span("train", "r"):
            for step in range(200):
                with step_span(step), phase_span("learn"):
                    pass
    ours = [one.getMessage() for one in caplog.records if one.name == tracing.__name__]
    assert len(ours) <= 2 and all(line.startswith("traces are not delivered") for line in ours)
