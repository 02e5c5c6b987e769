"""Filters of `PYTHONWARNINGS` that processes of Grove inherit.

A person who sets `PYTHONWARNINGS=error` for their own tests means no server: Celery warns when it
starts as root, and the worker would end before its first task.
"""

from __future__ import annotations

from collections.abc import Mapping

VARIABLE = "PYTHONWARNINGS"


def without_errors(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment without the filters that make an error of a warning."""
    filters = [one for one in environment.get(VARIABLE, "").split(",") if one]
    # Python takes any beginning of the word.
    kept = [one for one in filters if not _is_error(one.partition(":")[0].strip())]
    rest = {name: value for name, value in environment.items() if name != VARIABLE}
    return rest | ({VARIABLE: ",".join(kept)} if kept else {})


def _is_error(action: str) -> bool:
    return bool(action) and "error".startswith(action.lower())
