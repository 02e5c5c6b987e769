"""Problem of a search: from a dataset version, or typed in.

Invariant: the engine's own reader parses a typed problem, so every accepted one can be judged; each
error names the field, its value and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.config import bounded_json
from engine.config.errors import ConfigError
from engine.problems.errors import DatasetIssue
from engine.problems.problem import Problem
from engine.problems.records import RecordReader
from engine.problems.source import GENERATED
from webapp.datasets.models import DatasetVersion
from webapp.datasets.server_files.lookup import SHOWN_CHARACTERS, first_problems, problem_by_id
from webapp.experiments.run_settings.paths import refuse_dataset

PASTED = "pasted"
_EXAMPLE = '[{"arguments": [[3, 1]], "expected": [1, 3]}]'


@dataclass(frozen=True)
class Typed:
    """A typed problem. Tests are a JSON list, or lines of `assert`; without private tests the
    public ones serve as both."""

    statement: str
    entry_point: str
    """A function, a method `Class.name`, or empty for a program that reads stdin and prints."""
    public_tests: str
    private_tests: str = ""


def typed_problem(typed: Typed) -> Problem:
    """Returns the parsed problem. Raises `ConfigError` with every error."""
    errors: list[dict[str, Any]] = []
    record = {"id": PASTED, "statement": typed.statement, "entry_point": typed.entry_point.strip()}
    for field in ("public_tests", "private_tests"):
        text = getattr(typed, field).strip() or typed.public_tests
        try:
            record[field] = _tests(text)
        except ValueError as error:
            if getattr(typed, field).strip() or field == "public_tests":
                errors.append(_error(field, text, str(error)))
    if errors:
        raise ConfigError(errors)
    return recorded_problem(record)


def recorded_problem(record: Any) -> Problem:
    """Returns the problem of a record (`engine.problems.records`). Raises `ConfigError` with every
    error."""
    reader = RecordReader("problem", 0)
    problem = reader.problem(record)
    if problem is None or reader.issues:
        raise ConfigError([_error_of(issue) for issue in reader.issues])
    return problem


def _tests(text: str) -> Any:
    """Parses a field of tests. Raises `ValueError` with the remedy."""
    if not text.strip():
        raise ValueError(f"give at least one test, as JSON ({_EXAMPLE}) or as lines of assert")
    if text.lstrip().startswith("assert"):
        return [{"code": code} for code in _assertions(text)]
    try:
        return bounded_json.loads(text, parse_constant=_not_json)
    except bounded_json.LongNumber:
        raise
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        remedy = f"write a JSON list such as {_EXAMPLE}, or lines of assert"
        raise ValueError(f"is no JSON ({error}); {remedy}") from None


def _assertions(text: str) -> Iterator[str]:
    """Yields each `assert` at the start of a line, with the lines that belong to it."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("assert") and lines:
            yield "\n".join(lines).rstrip()
            lines = []
        lines.append(line)
    yield "\n".join(lines).rstrip()


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; write it in a ..._literal field")


def _error_of(issue: DatasetIssue) -> dict[str, Any]:
    return _error(issue.field, issue.value, issue.remedy)


def _error(field: str, value: Any, reason: str) -> dict[str, Any]:
    shown = value if isinstance(value, str) else repr(value)
    return {"path": field, "value": shown[:SHOWN_CHARACTERS], "reason": reason}


def some_problems(version: DatasetVersion) -> list[dict[str, str]]:
    """Returns {id, statement} of the first problems of a version, the statement truncated.

    Raises:
        ConfigError: its file cannot be read here.
    """
    _refuse_unreadable(version)
    return first_problems(version)


def problem_of(version: DatasetVersion, problem_id: str) -> Problem:
    """Returns the problem. Raises `ConfigError` if it does not exist or cannot be read here."""
    _refuse_unreadable(version)
    if problem := problem_by_id(version, problem_id):
        return problem
    examples = ", ".join(one["id"] for one in first_problems(version)[:3])
    reason = f"{version} has no such problem; there are for example {examples}"
    raise ConfigError([_error("problem", problem_id, reason)])


def _refuse_unreadable(version: DatasetVersion) -> None:
    if not version.artifact_id and version.spec.get("dataset", GENERATED) != GENERATED:
        refuse_dataset(version.spec["dataset"], version.dataset.project)
