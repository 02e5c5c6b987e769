"""Log lines of processes: text, or one JSON object a line (`GROVE_LOG_FORMAT=json`).

Invariants: a line is one line, whatever a message or a traceback contains. `error` is a traceback
without its first line, by which a worker recognises an engine's own last words in its output.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from engine.config.names import shown_text

VARIABLE = "GROVE_LOG_FORMAT"
TEXT, JSON = "text", "json"
_FIRST_LINE = "Traceback (most recent call last):\n"
_OF_RECORDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; anything else is what the line is about."""


class TextLines(logging.Formatter):
    """Formatter of text that steers no terminal: messages and tracebacks repeat what engines print
    and other people write."""

    def format(self, record: logging.LogRecord) -> str:
        return shown_text(super().format(record))


class JsonLines(logging.Formatter):
    """Formatter of `time` (ISO 8601, UTC), `level`, `logger`, `message`, what the record has
    besides (`request_id`, `run_id`), and `error`."""

    def __init__(self, static_fields: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._static = dict(static_fields or {})

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._static,
        }
        about = vars(record).items()
        line |= {name: value for name, value in about if name not in _OF_RECORDS | line.keys()}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info).removeprefix(_FIRST_LINE)
        return json.dumps(line, default=str)


def is_json_line(text: str) -> bool:
    """Returns whether a line of output was written by `JsonLines`."""
    return text.startswith('{"time": "')


def log_format(environment: Mapping[str, str]) -> str:
    """Returns the format that an environment names, `text` by default.

    Raises:
        ValueError: it names another one.
    """
    value = environment.get(VARIABLE) or TEXT
    if value not in (TEXT, JSON):
        raise ValueError(f"{VARIABLE} = {value!r}: give {TEXT} or {JSON}")
    return value


def configure_engine(run: str) -> None:
    """Writes the log of this process as JSON lines that name the run, if `GROVE_LOG_FORMAT`
    requests it; else changes nothing."""
    if log_format(os.environ) == JSON:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines({"run_id": run}))
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
