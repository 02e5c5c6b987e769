"""What the generated methods call: one request, its answer as a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec

Kind = TypeVar("Kind")
Send = Callable[..., httpx.Response]
Stream = Callable[..., AbstractContextManager[httpx.Response]]


class Transport:
    """Base of `Operations`. `send` makes a request and `stream` one whose answer is read in parts;
    both raise `Refused` for every refusal."""

    def __init__(self, send: Send, stream: Stream):
        self._send, self._stream = send, stream

    def _json(self, kind: type[Kind], method: str, path: str, **request: Any) -> Kind:
        """The answer as JSON."""
        return msgspec.json.decode(self._send(method, path, **request).content, type=kind)

    def _do(self, method: str, path: str, **request: Any) -> None:
        """An operation that has nothing to tell."""
        self._send(method, path, **request)

    def _text(self, method: str, path: str, **request: Any) -> str:
        return self._send(method, path, **request).text

    def _headers(self, method: str, path: str, **request: Any) -> httpx.Headers:
        return self._send(method, path, **request).headers

    def _blocks(self, method: str, path: str, **request: Any) -> Iterator[bytes]:
        """A file, block by block as it comes."""
        with self._stream(method, path, **request) as response:
            yield from response.iter_bytes()


def given(**values: Any) -> dict[str, Any]:
    """Those that are given."""
    return {name: value for name, value in values.items() if value is not msgspec.UNSET}


def body(**fields: Any) -> bytes:
    """A JSON body of the fields that are given."""
    return msgspec.json.encode(given(**fields))


def query(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as a query writes them; one that is unset is left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else msgspec.to_builtins(value)
        for name, value in parameters.items()
        if value is not msgspec.UNSET and value is not None
    }


def part(value: Any) -> str:
    """A part of a path."""
    return quote(str(value), safe="")
