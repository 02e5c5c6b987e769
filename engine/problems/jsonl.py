"""Grove's own problem files: JSONL with one problem per line, in the format of `records`.

Invariant: a file is read whole or not at all; `DatasetError` names every issue in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.config import bounded_json
from engine.problems.containers.text import BadLine, lines_of, without_duplicates
from engine.problems.errors import DatasetError, DatasetIssue
from engine.problems.problem import Problem
from engine.problems.records import RecordReader, record
from engine.resources.whole_files import whole_file

SEARCHED_FILE = "problem.jsonl"
"""File in the directory of a search at test time with its one problem."""


def load_problems(path: str | Path) -> list[Problem]:
    """Returns all problems of a file (plain, gzip or zstd) in its order.

    Raises:
        DatasetError: the file has issues; names each, and leaves out nothing silently.
    """
    return [problem for _, problem in numbered_problems(Path(path))]


def numbered_problems(path: Path) -> list[tuple[int, Problem]]:
    """Returns all problems of a file with their lines; raises as `load_problems` does."""
    issues: list[DatasetIssue] = []
    problems: list[tuple[int, Problem]] = []
    first_line: dict[str, int] = {}
    for number, line in lines_of(path):
        reader = RecordReader(str(path), number)
        problem = _problem(reader, line)
        issues += reader.issues
        if problem is None:
            continue
        if problem.id in first_line:
            remedy = f"already used in line {first_line[problem.id]}; ids must differ"
            issues.append(DatasetIssue(str(path), number, "id", problem.id, remedy))
        first_line.setdefault(problem.id, number)
        problems.append((number, problem))
    if not problems and not issues:
        issues.append(DatasetIssue(str(path), 0, "file", str(path), "holds no problem; add one"))
    if issues:
        raise DatasetError(issues)
    return problems


def problem_of_line(line: bytes, where: str) -> Problem:
    """Returns the problem of one line; `where` names the file in issues. Raises as `load_problems`
    does."""
    reader = RecordReader(where, 0)
    problem = _problem(reader, line)
    if problem is None or reader.issues:
        raise DatasetError(reader.issues)
    return problem


def save_problems(path: str | Path, problems: Iterable[Problem]) -> None:
    """Writes a file that `load_problems` reads back equal; whole or not at all.

    Raises:
        LiteralError: a test holds a value that is not plain.
    """
    with whole_file(Path(path)) as file:
        file.writelines((json.dumps(record(problem)) + "\n").encode() for problem in problems)


def _problem(reader: RecordReader, line: bytes) -> Problem | None:
    try:
        data = bounded_json.loads(
            line.decode("utf-8"),
            object_pairs_hook=without_duplicates,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        bad = BadLine(line, error)
        reader.add_issue("line", bad.start, str(bad))
        return None
    return reader.problem(data)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON; write it in a ..._literal field")
