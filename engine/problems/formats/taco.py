"""TACO (BAAI/TACO) and TACO-verified: rows as in APPS, with limits and tags.

Row: `question`, `input_output`, `solutions`, `starter_code` as in APPS; `time_limit` ("2.0
seconds"), `memory_limit` ("256.0 megabytes"), `difficulty`, `tags`, `skill_types` (lists as text).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats import apps
from engine.problems.formats.fields import Fields, megabytes, seconds
from engine.problems.problem import Limits, Problem
from engine.sandbox.guest.literals import LiteralError, from_literal

FIELDS = (*apps.FIELDS, "time_limit", "memory_limit", "tags", "skill_types", "raw_tags", "source")


def recognises(row: Mapping[str, Any]) -> bool:
    is_taco = bool({"skill_types", "Expected Time Complexity", "raw_tags"} & row.keys())
    return is_taco and apps.recognises(row)


def problem(fields: Fields) -> Problem:
    limits = Limits(
        seconds(fields.data.get("time_limit")) or apps.LIMITS.seconds,
        megabytes(fields.data.get("memory_limit")),
    )
    tags = (*fields.tags("difficulty", "source"), *_listed(fields.data.get("skill_types")))
    return apps.of_row(fields, fields.id("id", "taco"), tuple(dict.fromkeys(tags)), limits)


def _listed(value: Any) -> list[str]:
    """Returns the texts of a list, which may be written as a Python literal."""
    try:
        items = from_literal(value) if isinstance(value, str) else value
    except LiteralError:
        return []
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []
