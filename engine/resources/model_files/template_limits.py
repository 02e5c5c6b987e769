"""Limits of the rendering of a chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_CHARACTERS = 262_144
"""Of a template. The longest published ones, with tools, have some 30,000."""
MOST_PIECE = 1_000_000
"""Characters, or elements, of one result of an operator."""
MOST_RANGE = 100_000
"""Numbers of all calls of `range` in one rendering, so that loops within loops end too."""
MOST_BITS = 4_096
"""Of a whole number."""
MOST_WIDTH = 1_000
"""Of a field in a format text."""
MEMORY_BYTES = 256 << 20
CPU_SECONDS = 3
"""Of one rendering; one of a long conversation takes some milliseconds."""
WALL_SECONDS = 300
"""A machine may be busy: processor time ends a rendering long before, unless it is stopped."""
OUT_OF_MEMORY = 3
"""Exit status of the renderer after an allocation beyond its limit."""
KILLED = (
    f"its rendering takes more than {CPU_SECONDS} s of processor time or "
    f"{MEMORY_BYTES >> 20} MiB of memory"
)

_OWN_CHARACTERS = 65_536
_PER_CHARACTER = 4


def most_output(messages: Sequence[Mapping[str, Any]]) -> int:
    """Returns the most characters that a template may write for a conversation."""
    given = sum(len(value) for one in messages for value in one.values() if isinstance(value, str))
    return _OWN_CHARACTERS + _PER_CHARACTER * given
