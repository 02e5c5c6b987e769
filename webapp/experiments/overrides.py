"""Settings typed by hand: one `path = value` per line, values as in TOML.

Pure. A value that is no TOML is taken as text, so `agents.oak.model = models/oak` just works.
"""

from __future__ import annotations

import tomllib
from typing import Any

from engine.faults import ConfigError


def parse_overrides(text: str) -> dict[str, Any]:
    """Dotted path to value; empty lines and `#` comments are skipped.

    Raises:
        ConfigError: a line without a path or without `=`, or a path that is given twice.
    """
    overrides: dict[str, Any] = {}
    faults = []
    for line in text.splitlines():
        path, equals, value = (part.strip() for part in line.partition("="))
        if not (path or equals) or path.startswith("#"):
            continue
        if not (path and equals) or path in overrides:
            reason = "given twice" if path in overrides else "write one path = value per line"
            faults.append({"path": path, "value": value, "reason": reason})
            continue
        overrides[path] = _value(value)
    if faults:
        raise ConfigError(faults)
    return overrides


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also numbers too long, and brackets without end
        return text
