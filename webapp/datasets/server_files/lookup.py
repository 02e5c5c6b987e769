"""Lookup of one problem of a version, or of the first ones, without reading the others.

The database has the offset of each problem of a stored version in its file; a generated problem is
regenerated from its number; a file of the server is rewritten once, with an index, in a process
with limits (`indexing`), and read from there until it changes. Callers have checked permissions.
Invariant: for any version, this process reads at most `MOST_BYTES` of problems.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from django.db.models.functions import Left

from engine.config.errors import ConfigError, printable
from engine.config.problems import ProblemsConfig
from engine.problems.errors import DatasetError
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.jsonl import problem_of_line
from engine.problems.problem import Problem
from engine.problems.source import GENERATED
from webapp.artifacts.store import local_path
from webapp.datasets.models import DatasetVersion
from webapp.datasets.server_files import file_index
from webapp.disk import cause_of

MOST_BYTES = 8 << 20
"""Bytes of one problem, which a search stores and passes to its engine."""
SHOWN = 200
"""Problems of a version that are offered; any other can be named by its id."""
_SHOWN_GENERATED = 24
"""Fewer, because generating one takes some milliseconds while a user waits for the list."""
SHOWN_CHARACTERS = 80
_GENERATED_ID = re.compile(
    r"(?:generated|underspecified)-[0-9]{1,4}-([0-9]{1,10})-([0-9]{1,9})(?:-[0-9])?"
)


def first_problems(version: DatasetVersion) -> list[dict[str, str]]:
    """Returns {id, statement} of the first problems of a version, the statement truncated.

    Raises:
        ConfigError: its file cannot be read here.
    """
    if version.artifact_id:
        rows = version.problems.order_by("number")[:SHOWN]
        cut = Left("statement", SHOWN_CHARACTERS)
        return [
            {"id": name, "statement": statement}
            for name, statement in rows.values_list("problem", cut)
        ]
    config = ProblemsConfig(**version.spec)
    if config.dataset == GENERATED:
        generated = GeneratedProblems.of(config).stream(Split.TEST)
        number = min(max(1, config.test), _SHOWN_GENERATED)
        return [
            {"id": one.id, "statement": one.statement[:SHOWN_CHARACTERS]}
            for _, one in islice(generated, number)
        ]
    return file_index.of(config.dataset, config.format).first


def problem_by_id(version: DatasetVersion, problem_id: str) -> Problem | None:
    """Returns the problem; None if the version has none of that id. Of a generated version it
    returns any problem of the test split.

    Raises:
        ConfigError: its file cannot be read here, or it is larger than `MOST_BYTES`.
    """
    if version.artifact_id:
        return _stored(version, problem_id)
    config = ProblemsConfig(**version.spec)
    if config.dataset == GENERATED:
        return _generated(config, problem_id)
    index = file_index.of(config.dataset, config.format)
    location = index.locate(problem_id)
    return _read(version, index.path, *location, problem_id) if location else None


def _stored(version: DatasetVersion, problem_id: str) -> Problem | None:
    rows = version.problems.filter(problem=printable(problem_id)).order_by("number")
    row = rows.values_list("offset", "length").first()
    if row is None:
        return None
    try:
        path = local_path(version.artifact_id)
    except OSError as error:
        raise refusal("version", str(version), cause_of(error)) from None
    return _read(version, path, *row, problem_id)


def _generated(config: ProblemsConfig, problem_id: str) -> Problem | None:
    match = _GENERATED_ID.fullmatch(problem_id)
    if match is None or int(match[1]) != config.seed:
        return None
    problem, split = GeneratedProblems.of(config).at(int(match[2]))
    return problem if split is Split.TEST and problem.id == problem_id else None


def _read(version: DatasetVersion, path: Any, offset: int, length: int, problem_id: str) -> Problem:
    if length > MOST_BYTES:
        reason = f"this problem takes {length:,} bytes, a search at most {MOST_BYTES:,}"
        raise refusal("problem", problem_id, f"{reason}: choose one with fewer or smaller tests")
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return problem_of_line(file.read(length), str(version))
    except (DatasetError, OSError) as error:
        raise refusal("version", str(version), cause_of(error)) from None


def refusal(path: str, value: str, reason: str) -> ConfigError:
    return ConfigError([{"path": path, "value": value[:SHOWN_CHARACTERS], "reason": reason}])
