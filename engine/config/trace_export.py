"""Exporter of spans to a collector: OTLP over HTTP, in a thread of its own.

Invariants: spans wait in a queue of `OTEL_BSP_MAX_QUEUE_SIZE` (2,048), and are dropped where it is
full: no caller waits for the collector. Ids come from the operating system, never from `random`.
What the exporter logs is a line or two a minute, without tracebacks, by which a worker finds the
cause of an engine's end. Only `engine.config.tracing` imports this module.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from engine.config.tracing import LOST, Attributes

logger = logging.getLogger("engine.config.tracing")
LOG_SECONDS = 60.0
_trace_of: ContextVar[str] = ContextVar("trace_of", default="")
_propagator = TraceContextTextMapPropagator()


class Exporting:
    """The traces of one process."""

    def __init__(self, service: str):
        named = os.environ.get("OTEL_SERVICE_NAME", "").strip()
        _quieten(logging.getLogger("opentelemetry"))
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": named or service}),
            id_generator=_Ids(),
            shutdown_on_exit=False,  # it would wait for the collector
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("grove")

    @contextmanager
    def current(
        self, name: str, attributes: Attributes, parent: str, trace_of: str, start_ns: int | None
    ) -> Iterator[Span]:
        """See `tracing.span`."""
        given = _propagator.extract({"traceparent": parent}) if parent else None
        before = _trace_of.set(trace_of)
        opened: Any = self._tracer.start_span(
            name, given, attributes=dict(attributes), start_time=start_ns
        )
        _trace_of.reset(before)
        with self._attached(opened, given):
            yield opened

    @contextmanager
    def _attached(self, opened: Any, given: contexts.Context | None) -> Iterator[None]:
        """Has the block in this span, and ends it."""
        token = contexts.attach(trace.set_span_in_context(opened, given))
        error = ""
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            contexts.detach(token)
            self.end(opened, None, error)

    def open(
        self, name: str, attributes: Attributes, inside: Any, start_ns: int | None
    ) -> trace.Span:
        """See `tracing.open_span`."""
        where = None if inside is None else trace.set_span_in_context(inside)
        return self._tracer.start_span(
            name, where, attributes=dict(attributes), start_time=start_ns
        )

    def end(self, opened: trace.Span, end_ns: int | None, error: str) -> None:
        """See `tracing.close_span`. A message may hold what a model wrote, so it is left out."""
        if error:
            self.mark(opened, error)
        opened.end(end_ns)

    def mark(self, opened: trace.Span, error: str) -> None:
        """See `tracing.note_error`."""
        opened.set_attribute("error.type", error)
        opened.set_status(Status(StatusCode.ERROR))

    @contextmanager
    def request(self, method: str, request: str) -> Iterator[Span]:
        """See `tracing.request_span`. What a client says of its own trace is not believed: it would
        choose ids, and whether the span is sampled."""
        about = {"http.request.method": method, "grove.request.id": request}
        opened: Any = self._tracer.start_span(method, contexts.Context(), SpanKind.SERVER, about)
        with self._attached(opened, None):
            yield opened

    def name_request(self, opened: Span, method: str, route: str, status: int) -> None:
        """See `tracing.name_request`; names are those of OpenTelemetry's conventions."""
        opened.update_name(f"{method} {route}")
        opened.set_attribute("http.route", route)
        opened.set_attribute("http.response.status_code", status)
        if status >= 500:
            self.mark(opened, str(status))

    def traceparent(self) -> str:
        """Returns the current span in W3C's form, empty if there is none."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def close(self, seconds: float) -> None:
        """Sends what is queued, for at most `seconds`; the thread that sends is a daemon."""
        sending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        sending.start()
        sending.join(seconds)


class _Ids(IdGenerator):
    """Ids of the operating system. The id of a run's trace is a digest of the run's name: every
    worker and engine that has the run adds to one trace, and samplers by ratio see random bits."""

    def generate_span_id(self) -> int:
        return secrets.randbits(64) or 1

    def generate_trace_id(self) -> int:
        if name := _trace_of.get():
            return int.from_bytes(hashlib.sha256(name.encode()).digest()[:16])
        return secrets.randbits(128) or 1


class _Quiet(logging.Handler):
    """Passes the first line of a message on, to our log, once a minute of each of its loggers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now - self._last.get(record.name, -LOG_SECONDS) >= LOG_SECONDS:
            self._last[record.name] = now
            logger.warning("%s%.300s", LOST, record.getMessage().partition("\n")[0])


def _quieten(theirs: logging.Logger) -> None:
    if not any(isinstance(one, _Quiet) for one in theirs.handlers):
        theirs.addHandler(_Quiet())
        theirs.propagate = False
