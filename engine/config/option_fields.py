"""Check of `Options`, the class of settings that a module of a method may hold.

Options hold flags, numbers and choices: a text could name a file of the server.
"""

from __future__ import annotations

import types
import typing
from enum import Enum
from typing import Annotated, Any, Literal

from engine.config.base import Settings

_PLAIN = (bool, int, float, type(None))


def options_fault(options: Any) -> str:
    """Returns why an object is no class of options, in words; empty if it is one, or None."""
    if options is None:
        return ""
    if not (isinstance(options, type) and issubclass(options, Settings)):
        return "Options is no subclass of engine.config.base.Settings"
    for name, info in options.model_fields.items():
        if info.is_required():
            return f"Options.{name} has no default; give it one"
        if not info.description:
            return f"Options.{name} has no docstring, which is its help; write one below it"
        if not _is_plain(info.annotation):
            return f"Options.{name} is no flag, number or choice (bool, int, float, Enum, Literal)"
    return ""


def _is_plain(annotation: Any) -> bool:
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return True
    if origin is Annotated:
        return _is_plain(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return all(map(_is_plain, typing.get_args(annotation)))
    return annotation in _PLAIN or (isinstance(annotation, type) and issubclass(annotation, Enum))
