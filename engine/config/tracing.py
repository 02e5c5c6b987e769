"""Traces of processes by OpenTelemetry, off unless a standard variable names a collector.

Invariants: without `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` nothing of
OpenTelemetry is imported, and every function here returns at once. Nothing here stops a process or
waits for a collector, except `stop`, up to `FLUSH_SECONDS`. A run draws the same random numbers
with and without traces.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imports OpenTelemetry, which need not be installed
    from engine.config.trace_export import Exporting

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
PARENT = "TRACEPARENT"
"""Variable of a process that names the span which started it (W3C Trace Context)."""
OFF, LOST = "no traces: ", "traces are not delivered: "
"""How the lines begin that this module and its exporter log: no cause of anything else."""
FLUSH_SECONDS = 3.0
"""Longest wait of `stop` for a collector."""
Attributes = Mapping[str, str | int | float]

_exporting: Exporting | None = None


class TracingError(ValueError):
    """Raised if a variable of OpenTelemetry cannot be used: which, its value, the remedy."""


def endpoint(environment: Mapping[str, str]) -> str:
    """Returns the collector's address, empty if traces are off.

    Raises:
        TracingError: a variable has a value that cannot be used here.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    exporters = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    name = next((one for one in ENDPOINTS if environment.get(one, "").strip()), "")
    if not name or exporters == "none":
        return ""
    if exporters != "otlp":
        raise TracingError(f"OTEL_TRACES_EXPORTER = {exporters!r}: give otlp or none")
    for variable in _PROTOCOLS:
        if (value := environment.get(variable, "").strip() or PROTOCOL) != PROTOCOL:
            raise TracingError(f"{variable} = {value!r}: give {PROTOCOL} (port 4318)")
    value = environment[name].strip()
    if not value.startswith(("http://", "https://")):
        shown = value.rpartition("@")[2]  # no password
        raise TracingError(f"{name} = {shown!r}: give an address, as in http://127.0.0.1:4318")
    return value


def start(service: str) -> None:
    """Starts traces of this process, if the environment names a collector. What prevents them is
    logged in one line, and the process goes on without. `OTEL_SERVICE_NAME` overrides `service`."""
    global _exporting
    if _exporting is not None:
        return
    try:
        if endpoint(os.environ):
            from engine.config.trace_export import Exporting

            _exporting = Exporting(service)
    except ModuleNotFoundError as error:
        remedy = "pip install 'grove-rl[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        logger.warning("%s%s is not installed: %s", OFF, error.name, remedy)
    except Exception as error:  # traces stop no process, whatever the values of their variables
        logger.warning("%s%s", OFF, error)


def stop() -> None:
    """Sends what is left, for at most `FLUSH_SECONDS`, and ends the traces of this process."""
    global _exporting
    ending, _exporting = _exporting, None
    if ending:
        ending.close(FLUSH_SECONDS)


def is_on() -> bool:
    """Whether this process has traces."""
    return _exporting is not None


@contextmanager
def traced(service: str, name: str, attributes: Attributes) -> Iterator[Any]:
    """Starts traces, has the block in a span, which it yields as `span` does, and stops them. The
    variables that name the parent and hold the collector's secrets are removed from the
    environment: no child inherits them."""
    start(service)
    parent = os.environ.pop(PARENT, "")
    for secret in HEADERS if is_on() else ():
        os.environ.pop(secret, None)
    try:
        with span(name, attributes, parent=parent) as opened:
            yield opened
    finally:
        stop()


@contextmanager
def span(
    name: str,
    attributes: Attributes,
    *,
    parent: str = "",
    trace_of: str = "",
    start_ns: int | None = None,
) -> Iterator[Any]:
    """Has the block in a span, the current one of this thread; an error of the block is noted by
    its type. `parent` is a value of `PARENT`. A span without a parent begins a trace, whose id is a
    function of `trace_of`, if given."""
    if _exporting is None:
        yield None
        return
    with _exporting.current(name, attributes, parent, trace_of, start_ns) as opened:
        yield opened


def open_span(
    name: str, attributes: Attributes, inside: Any = None, start_ns: int | None = None
) -> Any:
    """Returns a new span inside another one, or the current one; `close_span` ends it. None if
    traces are off. Times are nanoseconds since the epoch."""
    return _exporting.open(name, attributes, inside, start_ns) if _exporting else None


def close_span(opened: Any, end_ns: int | None = None, error: str = "") -> None:
    """Ends a span of `open_span`; `error` is the type of what ended it, if anything did."""
    if opened is not None and _exporting is not None:
        _exporting.end(opened, end_ns, error)


def note_error(opened: Any, error: str) -> None:
    """Marks a span as failed, by the type of its error, though no exception left its block."""
    if opened is not None and _exporting is not None:
        _exporting.mark(opened, error)


@contextmanager
def request_span(method: str, request: str) -> Iterator[Any]:
    """Has the block in the span of an HTTP request, which begins a trace; `name_request` names it.
    `request` is its id."""
    if _exporting is None:
        yield None
        return
    with _exporting.request(method, request) as opened:
        yield opened


def name_request(opened: Any, method: str, route: str, status: int) -> None:
    """Names the span of a request by its route, never its path, and adds the response's status."""
    if opened is not None and _exporting is not None:
        _exporting.name_request(opened, method, route, status)


def traceparent() -> str:
    """Returns the current span as a value of `PARENT`; empty without one, or without traces."""
    return _exporting.traceparent() if _exporting else ""


def child_environment() -> dict[str, str]:
    """Returns the variable that names the current span to a process that is started."""
    return {PARENT: value} if (value := traceparent()) else {}
