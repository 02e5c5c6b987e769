"""Settings as TOML text, which the page shows alongside the form and accepts as pasted input.

Pure. Invariant: `parse_overrides(lines(settings))` gives `settings` again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

UNSET = "unset"
"""Marker of "no value", which TOML lacks."""


def value_text(value: Any) -> str:
    """Returns a setting's value as TOML; `unset` for None."""
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{key} = {value_text(item)}" for key, item in value.items() if item is not None)
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, float) and math.isfinite(value) and value == int(value) < 1e15:
        return f"{value:.1f}"
    return repr(value)


def lines(settings: Mapping[str, Any]) -> str:
    """Returns one `path = value` per line."""
    return "\n".join(f"{path} = {value_text(value)}" for path, value in settings.items())


def document(config: Mapping[str, Any]) -> str:
    """Returns all settings as a TOML file in the format of a recipe, without unset ones."""
    tables = {k: v for k, v in config.items() if isinstance(v, Mapping)}
    lists = {k: v for k, v in config.items() if _is_table_list(v)}
    plain = {k: v for k, v in config.items() if k not in tables and k not in lists}
    parts = [_pairs(plain)]
    for name, items in lists.items():
        parts += [f"[[{name}]]\n{_pairs(item)}" for item in items]
    parts += [f"[{name}]\n{_pairs(table)}" for name, table in tables.items()]
    return "\n\n".join(parts) + "\n"


def _pairs(table: Mapping[str, Any]) -> str:
    return lines({key: value for key, value in table.items() if value is not None})


def _is_table_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)
