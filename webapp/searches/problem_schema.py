"""JSON Schema of a problem as a search accepts it; `engine.problems.records` is its reader.

Omits what a schema cannot express: the `..._literal` fields, texts of Python literals for values
that JSON lacks, which the reader accepts in place of `arguments`, `expected` and `accepted`.
"""

from __future__ import annotations

import keyword
from typing import Any

from engine.config.names import PATTERN
from engine.problems.problem import Limits

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,60}"
_TEXT = {"type": "string", "pattern": r"^[^\x00]*$"}
_NONEMPTY_TEXT = {"type": "string", "pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _tests(*kinds: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"anyOf": list(kinds)} if len(kinds) > 1 else kinds[0],
        "minItems": 1,
    }


_CALL = _object(
    ("arguments", "expected"), arguments={"type": "array"}, expected={}, accepted={"type": "array"}
)
_CODE = _object(("code",), code=_TEXT)
_STDIN = _object(
    ("stdin", "expected"),
    stdin=_TEXT,
    expected=_TEXT,
    accepted={"type": "array", "items": _TEXT},
)


def _problem(entry_point: dict[str, Any], tests: dict[str, Any]) -> dict[str, Any]:
    return _object(
        ("id", "statement", "entry_point", "public_tests", "private_tests"),
        id={"type": "string", "pattern": PATTERN},
        statement=_NONEMPTY_TEXT,
        entry_point=entry_point,
        public_tests=tests,
        private_tests=tests,
        reference=_TEXT,
        difficulty={"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        tags={"type": "array", "items": _TEXT},
        prelude=_TEXT,
        comparison=_object(
            (),
            tolerance={"type": ["number", "null"], "exclusiveMinimum": 0},
            loose_types={"type": "boolean"},
            checker={"type": "string", "pattern": r"^$|^[^\x00]*def check\([^\x00]*$"},
        ),
        limits=_object(
            (),
            seconds={
                "type": ["number", "null"],
                "exclusiveMinimum": 0,
                "maximum": Limits.MAX_SECONDS,
            },
            memory_mb={
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": Limits.MAX_MEMORY_MB,
            },
        ),
    )


_FUNCTION = {
    "type": "string",
    "pattern": rf"^{_NAME}(\.{_NAME})?$",
    "not": {"enum": keyword.kwlist},
}
PROBLEM = {
    "anyOf": [
        _problem(_FUNCTION, _tests(_CALL, _CODE)),
        _problem({"const": ""}, _tests(_STDIN)),
        {"type": "null"},
    ]
}
"""With tests that call a function, or of a program that reads stdin and prints; or none."""
