"""What a log line is about: the request and the run at work in this thread or task.

Invariants: an id of a request is at most 64 characters of letters, digits, `.`, `_` and `-`; any
other that a client sends is replaced, so that nobody writes log lines of their own.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

HEADER = b"x-request-id"
_USABLE = re.compile(rb"[A-Za-z0-9._-]{1,64}")

request_id: ContextVar[str] = ContextVar("request_id", default="")
run_id: ContextVar[str] = ContextVar("run_id", default="")

Send = Callable[[dict[str, Any]], Awaitable[None]]


class LogContext(logging.Filter):
    """Adds `request_id` and `run_id` to the records to which they apply."""

    def filter(self, record: logging.LogRecord) -> bool:
        for variable in (request_id, run_id):
            if value := variable.get():
                setattr(record, variable.name, value)
        return True


def begin_request(scope: Mapping[str, Any]) -> str:
    """Sets the id of the request or websocket of this task, and returns it: the client's if it is
    usable, else a new one."""
    given = dict(scope["headers"]).get(HEADER, b"")
    name = given.decode() if _USABLE.fullmatch(given) else uuid.uuid4().hex
    request_id.set(name)
    return name


def naming(name: str, send: Send) -> Send:
    """Returns `send` with the id in the response's headers."""

    async def named(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (HEADER, name.encode())]
            message = {**message, "headers": headers}
        await send(message)

    return named


@contextmanager
def about_run(name: object) -> Iterator[None]:
    """Names the run in the log lines of this thread for the duration."""
    before = run_id.set(str(name))
    try:
        yield
    finally:
        run_id.reset(before)
