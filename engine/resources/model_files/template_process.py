"""The process that renders chat templates, one request (a line of JSON) at a time.

Invariants: the text is the one that transformers renders (its environment is built here anew: the
same options, extensions, filters and globals); memory and time of a rendering are limited by the
system, whatever the template does. Operators, `range` and output have limits of their own, whose
errors say what is too large. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
from collections.abc import Sized
from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2 import nodes, pass_eval_context
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.resources.model_files.template_limits import (
    CPU_SECONDS,
    MEMORY_BYTES,
    MOST_BITS,
    MOST_PIECE,
    MOST_RANGE,
    MOST_WIDTH,
    OUT_OF_MEMORY,
    WALL_SECONDS,
)

_FORMAT_WIDTH = re.compile(r"%(?:%|(?:\([^)]*\))?[-#0 +]*(\*|\d*)(?:\.(\*|\d*))?)")
_MOST_ERROR = 1_000


class Exceeded(Exception):
    """A limit that the template exceeds."""


class _Generation(Extension):
    """`{% generation %}`, which marks an assistant's text for training: here its body."""

    tags = {"generation"}

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @pass_eval_context
    def _body(self, context: Any, caller: Any) -> str:
        return caller()


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The environment of transformers, with bounded operators and `range`."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self) -> None:
        self.counted = 0
        """Numbers of `range` in this rendering."""
        self.now: str | None = None
        """Local time of this rendering in ISO 8601; None: the clock's."""
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        self.filters["tojson"] = _tojson
        functions: dict[str, Any] = self.globals
        functions["raise_exception"] = _raise_exception
        functions["strftime_now"] = self._strftime_now
        functions["range"] = self._range

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _refuse_large(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        try:
            self.counted += len(numbers)
        except OverflowError:
            self.counted = sys.maxsize
        if self.counted > MOST_RANGE:
            raise Exceeded(f"`range` counts more than {MOST_RANGE:,} numbers")
        return numbers

    def _strftime_now(self, format: str) -> str:
        now = datetime.now() if self.now is None else datetime.fromisoformat(self.now)
        return now.strftime(format)


def _refuse_large(operator: str, left: Any, right: Any) -> None:
    """Raises `Exceeded` for an operation whose result would be too large, before it is made."""
    if isinstance(left, int) and isinstance(right, int):
        bits = _bits(operator, left, right)
        if bits > MOST_BITS:
            raise Exceeded(f"`{operator}` makes a number of {bits:,} bits, {MOST_BITS:,} at most")
    elif operator == "%" and isinstance(left, str):
        _refuse_wide(left)
    elif (size := _size(operator, left, right)) > MOST_PIECE:
        raise Exceeded(f"`{operator}` makes {size:,} characters or items, {MOST_PIECE:,} at most")


def _bits(operator: str, left: int, right: int) -> int:
    if operator == "**":
        return left.bit_length() * right
    if operator == "*":
        return left.bit_length() + right.bit_length()
    return 0


def _size(operator: str, left: Any, right: Any) -> int:
    if operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
        return len(left) + len(right)
    if operator == "*" and isinstance(left, Sized) and isinstance(right, int):
        return len(left) * right
    if operator == "*" and isinstance(left, int) and isinstance(right, Sized):
        return left * len(right)
    return 0


def _refuse_wide(text: str) -> None:
    for widths in _FORMAT_WIDTH.findall(text):
        for width in widths:
            if width == "*" or len(width) > len(str(MOST_WIDTH)) or int(width or 0) > MOST_WIDTH:
                raise Exceeded(f"`%` formats a field of width {width[:20]}, {MOST_WIDTH:,} at most")


def _raise_exception(message: Any) -> None:
    raise TemplateError(message)


def _tojson(
    x: Any, ensure_ascii: Any = False, indent: Any = None, separators: Any = None,
    sort_keys: Any = False,
) -> str:  # fmt: skip
    # Jinja's own one escapes HTML.
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


@lru_cache(maxsize=8)
def _compiled(template: str) -> Any:
    return BoundedEnvironment().from_string(template)


def rendered(request: dict[str, Any]) -> str:
    """Raises whatever the template does."""
    most, size, pieces = request["most_output"], 0, []
    template = _compiled(request["template"])
    template.environment.counted, template.environment.now = 0, request.get("now")
    for piece in template.generate(
        messages=request["messages"],
        tools=None,
        documents=None,
        add_generation_prompt=request["add_generation_prompt"],
        **request["tokens"],
        **request["options"],
    ):
        size += len(piece)
        if size > most:
            raise Exceeded(f"its output has more than {most:,} characters for this conversation")
        pieces.append(piece)
    return "".join(pieces)


def reply_to(request: dict[str, Any]) -> dict[str, Any]:
    """Returns the text, or the error and whether a limit is exceeded. Raises `MemoryError`."""
    try:
        return {"text": rendered(request)}
    except Exceeded as error:
        return {"error": str(error), "exceeds": True}
    except MemoryError:
        raise
    except RecursionError:
        return {"error": "it, or something in it, calls itself without end", "exceeds": True}
    except Exception as error:  # a template may raise anything
        return {"error": f"{type(error).__name__}: {error}"[:_MOST_ERROR], "exceeds": False}


def _limit(what: int, most: int) -> None:
    """Sets the soft limit, within a stricter one of this process's starter."""
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _limit_time() -> None:
    """Gives one rendering its time; a signal then ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + CPU_SECONDS)
    signal.alarm(WALL_SECONDS)


def main() -> None:
    # Ctrl-C and a stop reach the whole process group: the starter decides, by closing the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _limit(resource.RLIMIT_AS, MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        _limit_time()
        reply = json.dumps(reply_to(json.loads(line)))
        sys.stdout.buffer.write(reply.encode() + b"\n")
        sys.stdout.buffer.flush()
        signal.alarm(0)


if __name__ == "__main__":
    try:
        main()
    except MemoryError:  # a process whose memory is full has none for the next request
        os._exit(OUT_OF_MEMORY)
