"""A local collector of OpenTelemetry: an HTTP server that reads OTLP protobuf."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.helpers.extras import needed
from tests.helpers.receivers import Receiver, a_receiver

REMEDY = "pip install 'grove-rl[otel]'"


@dataclass(frozen=True)
class SentSpan:
    """One span as the collector got it; ids are hexadecimal, times seconds."""

    service: str
    trace: str
    id: str
    parent: str
    name: str
    seconds: float
    is_error: bool
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What arrived at `url` (a value of OTEL_EXPORTER_OTLP_ENDPOINT)."""

    url: str
    receiver: Receiver

    def spans(self) -> list[SentSpan]:
        """Returns all spans that arrived so far, in the order of their ends."""
        messages = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
        spans = []
        for path, headers, body in self.receiver.taken:
            assert path == "/v1/traces" and headers["content-type"] == "application/x-protobuf"
            plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            for group in messages.ExportTraceServiceRequest.FromString(plain).resource_spans:
                service = _values(group.resource.attributes)["service.name"]
                spans += [_sent(service, one) for s in group.scope_spans for one in s.spans]
        return spans

    def tree(self) -> dict[str, list[str]]:
        """Returns the names of the spans inside each one, by name; both sorted, each once."""
        spans = self.spans()
        names = {one.id: one.name for one in spans}
        tree: dict[str, set[str]] = {}
        for one in spans:
            tree.setdefault(names.get(one.parent, ""), set()).add(one.name)
        return {name: sorted(inside) for name, inside in sorted(tree.items())}


def needs_opentelemetry() -> None:
    """Skips the test without the extra; in CI it fails."""
    needed("opentelemetry", REMEDY)
    needed("opentelemetry.sdk", REMEDY)


@contextmanager
def a_collector() -> Iterator[Collector]:
    """Receives spans until the block ends. Skips the test without the extra."""
    needs_opentelemetry()
    with a_receiver() as receiver:
        yield Collector(receiver.url, receiver)


def _sent(service: str, span: Any) -> SentSpan:
    seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
    ids = [one.hex() for one in (span.trace_id, span.span_id, span.parent_span_id)]
    is_error = span.status.code == 2
    return SentSpan(service, *ids, span.name, seconds, is_error, _values(span.attributes))


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
