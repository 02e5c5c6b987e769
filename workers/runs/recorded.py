"""Numbers that an engine's parent leaves in its directory for what watches the engine.

Invariant: a file that is absent, or that a machine lost with its power, records nothing; no reader
fails over it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workers.runs.engine_parent import EXIT_FILE, PID_FILE


def exit_code(run_dir: Path) -> int | None:
    """Returns the exit code of the engine that ended there, minus the signal if one ended it; None
    if none is recorded."""
    return _number(run_dir / EXIT_FILE, "code", int)


def process_id(run_dir: Path, role: str) -> int | None:
    """Returns the id of the process that is `pid` (the engine's parent) or `engine`."""
    return _number(run_dir / PID_FILE, role, int)


def start_time(run_dir: Path) -> float | None:
    """Returns when the engine of the recorded processes was started, in Unix seconds."""
    return _number(run_dir / PID_FILE, "time", float)


def _number(file: Path, key: str, kind: type[Any]) -> Any:
    try:
        return kind(json.loads(file.read_text())[key])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
