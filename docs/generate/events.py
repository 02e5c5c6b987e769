"""The page of events, from the structs of `engine.events.vocabulary` and the docstrings of their
fields.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from docs.generate import markdown
from docs.generate.markdown import code, paragraphs, sentence, table
from engine.events import vocabulary

ABOUT = """
The kinds of events in a run's log, `RUN_DIR/events.jsonl`, on the stream and in REST. An event has
`seq`, its number in the log; `time`, Unix seconds; `kind`; `tree` and `node` where it is of one;
and the payload below. The vocabulary is additive: fields are added with defaults, never renamed or
removed. A field whose default is *absent* is not in the payload unless it has a value. How events
reach a browser is on the page [The telemetry stream](../stream.md).
"""


def page() -> str:
    return markdown.page("Events", ABOUT, *_parts())


def _parts() -> Iterator[str]:
    kinds = {cls.__struct_config__.tag: cls for cls in typing.get_args(vocabulary.AnyPayload)}
    for kind, cls in kinds.items():
        yield f"## {kind}"
        yield paragraphs(cls.__dict__.get("__doc__"))
        yield table(("field", "type", "default", "meaning"), _fields(cls)) or "No fields."
    parts = [one for one in vars(vocabulary).values() if _is_part(one)]
    for cls in parts:
        yield f"## {cls.__name__}"
        yield paragraphs(cls.__dict__.get("__doc__"))
        yield table(("field", "type", "default", "meaning"), _fields(cls))
    for enum in [one for one in vars(vocabulary).values() if _is_enum(one)]:
        yield f"## {enum.__name__}"
        yield sentence((enum.__doc__ or "").split("\n\n")[0])
        yield ", ".join(code(member.value) for member in enum)


def _is_enum(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, StrEnum) and one is not StrEnum


def _is_part(one: object) -> bool:
    """Returns whether `one` is a struct that fields of payloads hold."""
    is_struct = isinstance(one, type) and issubclass(one, msgspec.Struct)
    return (
        is_struct
        and not issubclass(one, vocabulary.Payload)
        and one is not vocabulary.Event
        and any(one.__name__ in str(cls.__annotations__) for cls in _payloads())
    )


def _payloads() -> tuple[type, ...]:
    return typing.get_args(vocabulary.AnyPayload)


def _fields(cls: type) -> Iterator[tuple[str, ...]]:
    defaults = {field.name: field for field in msgspec.structs.fields(cls)}
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    for index, node in enumerate(body):
        if not isinstance(node, ast.AnnAssign):
            continue
        after = body[index + 1] if index + 1 < len(body) else None
        about = _text(after)
        name = node.target.id
        kind = ast.unparse(node.annotation).removesuffix(" | UnsetType")
        yield code(name), code(kind), _default(defaults[name].required, node.value), sentence(about)


def _default(is_required: bool, value: ast.expr | None) -> str:
    if is_required or value is None:
        return "required"
    text = ast.unparse(value)
    return "absent" if text == "UNSET" else code(text)


def _text(node: ast.stmt | None) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return node.value.value if is_text and isinstance(node.value.value, str) else ""
