"""The one problem of a search: of a dataset's version, or typed in.

Invariant: what is typed in is read by the engine's own reader of problems, so whatever it takes can
be judged; each fault names the field, its value and the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.config import ProblemsConfig
from engine.faults import ConfigError
from engine.problems.errors import DatasetError, DatasetFault
from engine.problems.formats import OWN
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.load import load_dataset
from engine.problems.problem import Problem
from engine.problems.records import RecordReader
from engine.problems.source import GENERATED
from webapp.artifacts.store import local_path
from webapp.datasets.models import DatasetVersion
from webapp.experiments.paths import refuse_dataset

PASTED = "pasted"
SHOWN = 200
"""Problems of a version that one chooses from; any other can be named by its id."""
_SHOWN_GENERATED = 24
"""Making one takes tens of milliseconds, and somebody waits for the list."""
_MOST_GENERATED = 1000
_SHOWN_CHARACTERS = 80
_EXAMPLE = '[{"arguments": [[3, 1]], "expected": [1, 3]}]'


@dataclass(frozen=True)
class Typed:
    """A problem as somebody wrote it. Tests are a JSON list, or lines of `assert`; without private
    tests the public ones are both."""

    statement: str
    entry_point: str
    """A function, a method `Class.name`, or empty for a program that reads stdin and prints."""
    public_tests: str
    private_tests: str = ""


def typed_problem(typed: Typed) -> Problem:
    """Raises ConfigError with every fault."""
    faults: list[dict[str, Any]] = []
    record = {"id": PASTED, "statement": typed.statement, "entry_point": typed.entry_point.strip()}
    for field in ("public_tests", "private_tests"):
        text = getattr(typed, field).strip() or typed.public_tests
        try:
            record[field] = _tests(text)
        except ValueError as error:
            if getattr(typed, field).strip() or field == "public_tests":
                faults.append(_fault(field, text, str(error)))
    if faults:
        raise ConfigError(faults)
    return recorded_problem(record)


def recorded_problem(record: Any) -> Problem:
    """The problem of a record (`engine.problems.records`). Raises ConfigError with every fault."""
    reader = RecordReader("problem", 0)
    problem = reader.problem(record)
    if problem is None or reader.faults:
        raise ConfigError([_told(fault) for fault in reader.faults])
    return problem


def _tests(text: str) -> Any:
    """What a field of tests says, as data. Raises ValueError with the remedy."""
    if not text.strip():
        raise ValueError(f"give at least one test, as JSON ({_EXAMPLE}) or as lines of assert")
    if text.lstrip().startswith("assert"):
        return [{"code": code} for code in _assertions(text)]
    try:
        return json.loads(text, parse_constant=_not_json)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        remedy = f"write a JSON list such as {_EXAMPLE}, or lines of assert"
        raise ValueError(f"is no JSON ({error}); {remedy}") from None


def _assertions(text: str) -> Iterator[str]:
    """Each `assert` that stands at the start of a line, with the lines that belong to it."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("assert") and lines:
            yield "\n".join(lines).rstrip()
            lines = []
        lines.append(line)
    yield "\n".join(lines).rstrip()


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; write it in a ..._literal field")


def _told(fault: DatasetFault) -> dict[str, Any]:
    return _fault(fault.field, fault.value, fault.remedy)


def _fault(field: str, value: Any, reason: str) -> dict[str, Any]:
    shown = value if isinstance(value, str) else repr(value)
    return {"path": field, "value": shown[:_SHOWN_CHARACTERS], "reason": reason}


def problems_of(version: DatasetVersion) -> Iterator[Problem]:
    """All problems of a version, stored or of its file; of generated ones those held back for the
    test.

    Raises:
        ConfigError: the file cannot be read here.
    """
    try:
        if version.artifact_id:
            yield from load_dataset(str(local_path(version.artifact_id)), OWN).problems
            return
        config = ProblemsConfig(**version.spec)
        if config.dataset == GENERATED:
            count = min(max(1, config.test), _MOST_GENERATED)
            made = GeneratedProblems(config.seed).stream(Split.TEST)
            yield from (problem for _, problem in islice(made, count))
            return
        refuse_dataset(config.dataset, version.dataset.project)
        yield from load_dataset(config.dataset, config.format).problems
    except (DatasetError, OSError) as error:
        raise ConfigError([_fault("version", str(version), str(error))]) from None


def some_problems(version: DatasetVersion) -> list[dict[str, str]]:
    """{id, statement} of the first problems of a version, the statement cut."""
    number = _SHOWN_GENERATED if version.spec.get("dataset") == GENERATED else SHOWN
    return [
        {"id": one.id, "statement": one.statement[:_SHOWN_CHARACTERS]}
        for one in islice(problems_of(version), number)
    ]


def problem_of(version: DatasetVersion, problem_id: str) -> Problem:
    """Raises ConfigError if there is no such problem."""
    for one in problems_of(version):
        if one.id == problem_id:
            return one
    known = ", ".join(one["id"] for one in some_problems(version)[:3])
    reason = f"{version} has no such problem; there are for example {known}"
    raise ConfigError([_fault("problem", problem_id, reason)])
