"""Parser of untrusted files, in a separate process:
`python -m webapp.datasets.parsing.parser_process < JOB`.

The output is problems rewritten in Grove's format: none of the input bytes (archives, comments,
other documents that the same bytes may be) is passed on.

Invariants: the process limits itself to the seconds and bytes of its job before it reads a file; a
file's content determines its type, never its name; it writes only into the folder of the job. A row
that is none is left out or refuses the file as on the command line (`engine.problems.load`).

JOB: {"files": [{"path", "name"}], "format", "out", "seconds", "memory_bytes", "most_bytes"}.
`out` then contains `refusal.json` ([text]), or `problems.jsonl`, `rows.jsonl` (one `row_of` per
problem) and `summary.json`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.problems.containers.columns import is_columnar
from engine.problems.errors import DatasetError, DatasetIssue
from engine.problems.formats import DETECTED
from engine.problems.identity import content_hash, set_hash_of
from engine.problems.load import LoadedDataset, RowLocation, load_dataset
from engine.problems.problem import CallTest, Problem, StdinTest
from engine.problems.records import RecordReader, record
from engine.sandbox.guest.literals import LiteralError
from webapp.datasets.parsing.statistics import statistics
from webapp.limited_process import exit_status_of, limit_self

_FOREIGN = (
    (b"PK\x03\x04", "a zip archive"), (b"PK\x05\x06", "a zip archive"), (b"\x80", "a pickle"),
    (b"\x7fELF", "a program"), (b"MZ", "a program"), (b"%PDF", "a PDF"), (b"\x89PNG", "an image"),
    (b"GIF8", "an image"), (b"\xff\xd8\xff", "an image"), (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a rar archive"), (b"BZh", "a bzip2 file"), (b"\xfd7zXZ", "an xz file"),
    (b"SQLite", "a database"), (b"<", "a page or a document"), (b"#!", "a program"),
)  # fmt: skip
_REMEDY = "upload JSON or JSONL (plain, gzip or zstd), Parquet or Arrow"
_MAX_ERRORS = 20
MOST_LEFT_OUT = 10_000
"""Faults kept per version; further ones are only counted."""
MOST_STATEMENT = 1_000_000
MOST_NAME = 1000
"""Characters of each field that lists show of a problem; one with more is left out."""
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True)
class ParsedProblem:
    """A problem with its line in Grove's format."""

    problem: Problem
    line: bytes


def main() -> int:
    """Reads one job. Exit status 0: read or refused, as recorded in `out`."""
    job = json.load(sys.stdin)
    limit_self(job)
    out = Path(job["out"])
    try:
        loaded = _loaded(job, out)
        parsed, left_out = _rewritten(loaded)
        if not parsed:
            raise DatasetError(left_out)
        texts = [_error_text(job, out, one) for one in left_out[:MOST_LEFT_OUT]]
        _write(out, loaded.format, parsed, texts, len(left_out))
    except DatasetError as error:
        more = len(error.issues) - _MAX_ERRORS
        texts = [_error_text(job, out, one) for one in error.issues[:_MAX_ERRORS]]
        texts += [f"... and {more} more"] if more > 0 else []
        (out / "refusal.json").write_text(json.dumps(texts))
    return 0


def _loaded(job: dict[str, Any], out: Path) -> LoadedDataset:
    folder = out / "in"
    folder.mkdir()
    for index, file in enumerate(job["files"]):
        link = _link(out, index)
        link.symlink_to(file["path"])
        _refuse_foreign(link)
    one = len(job["files"]) == 1
    return load_dataset(_link(out, 0) if one else folder, job["format"] or DETECTED)


def _link(out: Path, index: int) -> Path:
    return out / "in" / f"{index + 1:04}.jsonl"


def _refuse_foreign(link: Path) -> None:
    with link.open("rb") as file:
        start = file.read(64)
    kind = next((what for magic, what in _FOREIGN if start.startswith(magic)), "")
    is_text = not is_columnar(start[:8]) and not start.startswith(_PACKED)
    if not kind and is_text and b"\0" in start:
        kind = "not text"
    if kind:
        raise DatasetError(
            [DatasetIssue(str(link), 0, "file", start[:12], f"is {kind}; {_REMEDY}")]
        )


def _rewritten(loaded: LoadedDataset) -> tuple[list[ParsedProblem], list[DatasetIssue]]:
    """Returns every problem as a line that parses back, and the faults of those left out."""
    parsed, left_out = [], list(loaded.left_out)
    for location, problem in zip(loaded.locations, loaded.problems, strict=True):
        try:
            line = json.dumps(record(problem)).encode() + b"\n"
        except LiteralError as error:
            row_error = DatasetIssue(location.file, location.line, "tests", problem.id, str(error))
            left_out.append(row_error)
            continue
        reader = RecordReader(location.file, location.line)
        reader.problem(json.loads(line))
        errors = reader.issues[:1] or _too_long(problem, location)
        left_out += errors
        if not errors:
            parsed.append(ParsedProblem(problem, line))
    return parsed, left_out


def _too_long(problem: Problem, location: RowLocation) -> list[DatasetIssue]:
    texts = [("id", problem.id, MOST_NAME), ("entry_point", problem.entry_point, MOST_NAME)]
    texts += [("tags", tag, MOST_NAME) for tag in problem.tags]
    for field, text, limit in [*texts, ("statement", problem.statement, MOST_STATEMENT)]:
        if len(text) > limit:
            remedy = f"has {len(text):,} characters; at most {limit:,} are accepted"
            return [DatasetIssue(location.file, location.line, field, text[:80], remedy)]
    return []


def _write(
    out: Path, format: str, parsed: list[ParsedProblem], left_out: list[str], number_left_out: int
) -> None:
    hashes = [content_hash(one.problem) for one in parsed]
    with (out / "problems.jsonl").open("wb") as problems, (out / "rows.jsonl").open("w") as rows:
        offset = 0
        for one, digest in zip(parsed, hashes, strict=True):
            problems.write(one.line)
            rows.write(json.dumps(row_of(one.problem, digest, offset, len(one.line))) + "\n")
            offset += len(one.line)
    if more := number_left_out - len(left_out):
        left_out = [*left_out, f"... and {more} more"]
    summary = {
        "format": format,
        "hash": set_hash_of(hashes),
        "left_out": left_out,
        "statistics": statistics([one.problem for one in parsed], number_left_out),
    }
    (out / "summary.json").write_text(json.dumps(summary))


def row_of(problem: Problem, digest: str, offset: int, length: int) -> dict[str, Any]:
    return {
        "problem": problem.id,
        "content_hash": digest,
        "statement": problem.statement,
        "entry_point": problem.entry_point,
        "kind": kind_of(problem),
        "public_tests": len(problem.public_tests),
        "private_tests": len(problem.private_tests),
        "has_reference": bool(problem.reference.strip()),
        "difficulty": problem.difficulty,
        "tags": list(problem.tags)[:20],
        "offset": offset,
        "length": length,
    }


def kind_of(problem: Problem) -> str:
    """Returns the kind of its first test: calls (of a function), stdin (a program), or code
    (asserts)."""
    first = problem.public_tests[0]
    return (
        "calls"
        if isinstance(first, CallTest)
        else ("stdin" if isinstance(first, StdinTest) else "code")
    )


def _error_text(job: dict[str, Any], out: Path, error: DatasetIssue) -> str:
    """Returns the fault as text, with the file's original name."""
    names = {str(_link(out, index)): one["name"] for index, one in enumerate(job["files"])}
    names[str(out / "in")] = "the upload"  # after its files, whose paths have this prefix
    value = names.get(error.value, error.value) if isinstance(error.value, str) else error.value
    text = str(replace(error, value=value))
    for path, name in names.items():
        text = text.replace(path, name)
    return text


if __name__ == "__main__":
    sys.exit(exit_status_of(main))
