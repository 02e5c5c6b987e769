"""Loading of a whole data set from a local file or folder, or from a Hugging Face hub, in any
format and container.

Invariants:
- Every row becomes a problem, or an issue in `left_out` with its file, row, field and remedy.
- No two problems of a data set have the same id or the same content.
- Our own files are read strictly: an issue in any row refuses the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from engine.config.names import name_fault
from engine.hub.download import snapshot
from engine.hub.reference import RepoType, is_hub, parse
from engine.problems.containers import Row, files_below, is_folder, is_jsonl, parts_of, rows_of
from engine.problems.containers.text import BadLine
from engine.problems.errors import DatasetError, DatasetIssue
from engine.problems.formats import DETECTED, FORMATS, OWN, format_of
from engine.problems.formats.fields import Fields, RowError
from engine.problems.identity import content_hash
from engine.problems.jsonl import numbered_problems
from engine.problems.problem import CodeTest, Problem, StdinTest
from engine.problems.records import (
    LONE_SURROGATE,
    NOT_AN_OBJECT,
    REQUIRED,
    RecordReader,
    is_unicode,
)

_TRIED_ROWS = 20


@dataclass(frozen=True)
class RowLocation:
    """Position of a problem in its source; `line` counts rows of the file from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class LoadedDataset:
    """Problems of a data set, and the issues of rows that could not be used."""

    format: str
    problems: list[Problem] = field(default_factory=list)
    locations: list[RowLocation] = field(default_factory=list)
    """Positions of the problems, in the same order."""
    left_out: list[DatasetIssue] = field(default_factory=list)


def format_names() -> tuple[str, ...]:
    """Returns all values that are accepted as a format."""
    return (DETECTED, OWN, *FORMATS.every())


def load_dataset(path: str | Path, format: str = DETECTED) -> LoadedDataset:
    """Reads a data set: a path, or `hf:ORG/NAME@REVISION`, of which each file of rows is read;
    `format` is `auto` or one of `format_names()`.

    Raises:
        DatasetError: no problem of it can be read, its format is unknown, or it is one of our own
            files and has issues.
        HubError: a hub refuses it (`engine.hub.download.snapshot`).
    """
    if format not in format_names():
        remedy = f"unknown format; one of {', '.join(format_names())}"
        raise DatasetError([DatasetIssue(str(path), 0, "format", format, remedy)])
    reference = str(path)
    hub = is_hub(reference)
    path = snapshot(parse(reference, RepoType.DATASET)) if hub else Path(path)
    if format == DETECTED:
        format = _detected(path)
    if format == OWN:
        return _own(path)
    return _published(path, format)


def _detected(path: Path) -> str:
    seen: list[str] = []
    not_rows: list[DatasetIssue] = []
    for row in islice(rows_of(path), _TRIED_ROWS):
        if isinstance(row.data, dict):
            if matching := format_of(row.data):
                return matching
            seen = seen or sorted(map(str, row.data))
        else:
            not_rows.append(_not_a_row(row))
    if not seen:
        empty = DatasetIssue(str(path), 0, "file", str(path), "holds no problem; add one")
        raise DatasetError(not_rows or [empty])
    fields = {OWN: REQUIRED, **{name: one.FIELDS for name, one in FORMATS.every().items()}}
    choices = "; ".join(f"{name}: {', '.join(names)}" for name, names in fields.items())
    remedy = f"no format has these fields; name its format, or use the fields of one: {choices}"
    raise DatasetError([DatasetIssue(str(path), 0, "fields", seen, remedy)])


def _own(path: Path) -> LoadedDataset:
    """Reads our own format: JSONL, or any other container, or a folder of them."""
    problems: list[tuple[RowLocation, Problem]] = []
    issues: list[DatasetIssue] = []
    in_folder = is_folder(path)
    for file in files_below(path) if in_folder else [path]:
        if in_folder and (other := _foreign_to_own(file)):
            issues.append(other)
            continue
        if is_jsonl(file):
            problems += [
                (RowLocation(str(file), line), one) for line, one in numbered_problems(file)
            ]
            continue
        for row in rows_of(file):
            reader = RecordReader(row.file, row.line)
            problem = reader.problem(row.data)
            issues += reader.issues
            if problem:
                problems.append((RowLocation(row.file, row.line), problem))
    if issues:
        raise DatasetError(issues)
    return _collected(OWN, problems)


def _foreign_to_own(file: Path) -> DatasetIssue | None:
    """Returns an issue for a file none of whose first rows has a field that ours need."""
    first = [row.data for row in islice(rows_of(file), _TRIED_ROWS)]
    dicts = [row for row in first if isinstance(row, dict)]
    if len(dicts) < len(first) or not dicts or any(REQUIRED[1] in row for row in dicts):
        return None
    return _other_layout(file, OWN, dicts[0])


def _published(path: Path, format: str) -> LoadedDataset:
    return _collected(format, _read(path, format))


def _read(path: Path, format: str) -> Iterator[tuple[RowLocation, Problem | DatasetIssue]]:
    """Yields what every row becomes; of a file of another layout in a folder, one issue."""
    one, in_folder = FORMATS[format], is_folder(path)
    for file, rows in parts_of(path, one.FIELDS):
        first = list(islice(rows, _TRIED_ROWS))
        dicts = [row.data for row in first if isinstance(row.data, dict)]
        if in_folder and dicts and not any(map(one.recognises, dicts)):
            yield RowLocation(str(file), 0), _other_layout(file, format, dicts[0])
            continue
        for row in chain(first, rows):
            yield RowLocation(row.file, row.line), _problem(row, format)


def _other_layout(file: Path, format: str, row: dict[str, Any]) -> DatasetIssue:
    other = format_of(row)
    layout = f"of the layout {other}" if other else "of a layout that is not known"
    remedy = f"is {layout}, and the folder is read as {format}; give it alone, or in its own folder"
    return DatasetIssue(str(file), 0, "file", sorted(map(str, row))[:20], remedy)


def _problem(row: Row, format: str) -> Problem | DatasetIssue:
    if not isinstance(row.data, dict):
        return _not_a_row(row)
    try:
        if not FORMATS[format].recognises(row.data) and (other := format_of(row.data)):
            remedy = f"is of the layout {other}, and the file is read as {format}; give it alone"
            return DatasetIssue(row.file, row.line, "fields", sorted(map(str, row.data)), remedy)
        return FORMATS[format].problem(Fields(row.data, row.line))
    except RowError as error:
        return DatasetIssue(row.file, row.line, error.field, error.value, error.remedy)
    except Exception as error:
        if format in FORMATS.own:
            raise
        remedy = f"the format raised {type(error).__name__}: {error}; mend its package"
        return DatasetIssue(row.file, row.line, "format", format, remedy)


def _not_a_row(row: Row) -> DatasetIssue:
    if isinstance(row.data, ValueError):
        start = row.data.start if isinstance(row.data, BadLine) else None
        return DatasetIssue(row.file, row.line, "line", start, str(row.data))
    return DatasetIssue(row.file, row.line, "line", row.data, NOT_AN_OBJECT)


def _collected(
    format: str, results: Iterable[tuple[RowLocation, Problem | DatasetIssue]]
) -> LoadedDataset:
    dataset = LoadedDataset(format)
    by_content: dict[str, tuple[RowLocation, str]] = {}
    ids: set[str] = set()
    for location, problem in results:
        if not isinstance(problem, DatasetIssue) and (field := _lone_surrogate_field(problem)):
            problem = DatasetIssue(location.file, location.line, field, problem.id, LONE_SURROGATE)
        elif not isinstance(problem, DatasetIssue) and (fault := name_fault(problem.id)):
            problem = DatasetIssue(location.file, location.line, "id", problem.id, fault)
        if isinstance(problem, DatasetIssue):
            dataset.left_out.append(problem)
            continue
        content = content_hash(problem)
        if content in by_content:
            first, name = by_content[content]
            remedy = f"the same problem as {name} at {first}; only that one is kept"
            dataset.left_out.append(
                DatasetIssue(location.file, location.line, "id", problem.id, remedy)
            )
            continue
        if problem.id in ids:  # shards and splits often restart their numbering
            problem = replace(problem, id=f"{problem.id}#{content[:12]}")
        by_content[content] = location, problem.id
        ids.add(problem.id)
        dataset.problems.append(problem)
        dataset.locations.append(location)
    if not dataset.problems:
        raise DatasetError(dataset.left_out or [_empty(format)])
    return dataset


def _lone_surrogate_field(problem: Problem) -> str:
    """Returns the field of the first text that is not valid Unicode, which no model accepts; else
    an empty string."""
    texts = [("id", problem.id), ("statement", problem.statement)]
    for test in (*problem.public_tests, *problem.private_tests):
        if isinstance(test, StdinTest):
            texts += [("tests", test.stdin), ("tests", test.expected)]
        elif isinstance(test, CodeTest):
            texts.append(("tests", test.code))
    return next((field for field, text in texts if not is_unicode(text)), "")


def _empty(format: str) -> DatasetIssue:
    return DatasetIssue(format, 0, "file", None, "holds no problem; add one")
