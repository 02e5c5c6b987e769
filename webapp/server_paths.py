"""Texts about failures as members read them: without the places of this server's files.

Invariant: what comes from a process of the server and names files passes through `relative` before
it is stored, so that pages, REST, exports and streams need not. A path below a folder that is known
becomes relative to it; of any other only the name is left. The operator's own logs keep all.
"""

from __future__ import annotations

import re
import site
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from engine.events.vocabulary import Event

DIAGNOSTIC = {"error", "run.state", "run.waiting", "log.line"}
"""Kinds of events whose texts are about the engine itself, not what its agents wrote."""
# At least two names: a word such as /v1 names no file of this server.
_ABSOLUTE = re.compile(r"(?<![\w:/.~-])(?:/[^\s/'\"`:;,()\[\]<>{}|]+){2,}/?")


def relative(text: str) -> str:
    """Returns the text with every absolute path made relative, or reduced to its name."""
    if "/" not in text:
        return text
    text = _below(_roots()).sub(lambda found: "" if found[1] else ".", text)
    return _ABSOLUTE.sub(lambda found: found[0].rstrip("/").rpartition("/")[2], text)


def relative_event(event: Event) -> Event:
    """Returns the event of an engine of this server as members may read it."""
    if event.kind not in DIAGNOSTIC:
        return event
    return Event(
        event.seq, event.time, event.kind, event.tree, event.node, _relative(event.payload)
    )


def _relative(value: Any) -> Any:
    if isinstance(value, str):
        return relative(value)
    if isinstance(value, dict):
        return {key: _relative(item) for key, item in value.items()}
    return [_relative(item) for item in value] if isinstance(value, list) else value


def _roots() -> tuple[str, ...]:
    """Returns the folders to which paths are made relative, the deepest first."""
    folders: list[str | Path | None] = [
        *(settings.GROVE_VAR, settings.BASE_DIR, *settings.MODELS_DIRS, *settings.DATASETS_DIRS),
        *(sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()),
        *(sysconfig.get_path("stdlib"), sys.prefix, sys.base_prefix),
        *(tempfile.gettempdir(), Path.home()),
    ]
    paths = {Path(folder) for folder in folders if folder}
    names = {str(path) for one in paths for path in (one, one.resolve())} - {"/", "."}
    return tuple(sorted(names, key=len, reverse=True))


@cache
def _below(roots: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, roots))})(?:(/)|(?![\w.-]))")
