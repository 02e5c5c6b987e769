"""Parser of typed settings: one `path = value` per line, values as in TOML, or a TOML file.

Pure. A value that is no TOML is a string, so `agents.oak.model = models/oak` works; `unset` removes
a value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from engine.config.errors import ConfigError
from webapp.experiments.run_settings.toml import UNSET


def parse_overrides(text: str) -> dict[str, Any]:
    """Returns dotted path to value; skips empty lines and `#` comments.

    Raises:
        ConfigError: a line without a path or without `=`, or a path that is given twice.
    """
    text = text.removeprefix("\ufeff")  # of a file that was pasted
    try:
        return dict(_leaves("", tomllib.loads(text)))
    except (ValueError, RecursionError):
        return _by_line(text)


def typed_value(text: str) -> Any:
    """Parses a typed value: TOML, `unset`, or else a string."""
    if text == UNSET:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also numbers too long, and brackets without end
        return text


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of a value; a list is one leaf."""
    if not isinstance(value, Mapping):
        return [(path, value)]
    return [
        leaf
        for key, item in value.items()
        for leaf in _leaves(f"{path}.{key}" if path else key, item)
    ]


def _by_line(text: str) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    problems = []
    for line in text.splitlines():
        path, equals, value = (part.strip() for part in line.partition("="))
        if not (path or equals) or path.startswith("#"):
            continue
        if not (path and equals) or path in overrides:
            reason = "given twice" if path in overrides else "write one path = value per line"
            problems.append({"path": path, "value": value, "reason": reason})
            continue
        overrides[path] = typed_value(value)
    if problems:
        raise ConfigError(problems)
    return overrides
