"""Indexing of a file of the server, rewritten as lines in Grove's format, in a separate process:
`python -m webapp.datasets.server_files.indexing < JOB`.

JOB: {"dataset", "format", "out", and the limits of `limited_process`}. `out` then holds `REFUSAL`
(text), or `PROBLEMS`, `FIRST` (JSON, [{id, statement}]) and `INDEX`: lines of `WIDTH` bytes, digest
of the id, offset and length of the problem's line, sorted.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from engine.problems.errors import DatasetError
from engine.problems.load import load_dataset
from engine.problems.problem import Problem
from engine.problems.records import record
from engine.sandbox.guest.literals import LiteralError
from webapp.limited_process import exit_status_of, limit_self

PROBLEMS, FIRST, INDEX, REFUSAL = "problems.jsonl", "first.json", "index.txt", "refusal.txt"
_DIGEST, _OFFSET, _LENGTH = 64, 20, 12
WIDTH = _DIGEST + 1 + _OFFSET + 1 + _LENGTH + 1
_SHOWN, _SHOWN_CHARACTERS = 200, 80
_MAX_ERRORS = 3


def key_of(problem_id: str) -> str:
    """Returns the key of a problem in the index."""
    return hashlib.sha256(problem_id.encode("utf-8", "surrogatepass")).hexdigest()


def main() -> int:
    """Rewrites one job. Exit status 0: rewritten or refused, as recorded in `out`."""
    job: dict[str, Any] = json.load(sys.stdin)
    limit_self(job)
    out = Path(job["out"])
    try:
        _write(out, load_dataset(job["dataset"], job["format"]).problems)
    except DatasetError as error:
        (out / REFUSAL).write_text("; ".join(map(str, error.issues[:_MAX_ERRORS])))
    return 0


def _write(out: Path, problems: list[Problem]) -> None:
    offset, lines, first = 0, [], []
    with (out / PROBLEMS).open("wb") as file:
        for one in problems:
            try:
                line = json.dumps(record(one)).encode() + b"\n"
            except LiteralError:
                continue  # no search could store it
            file.write(line)
            lines.append(f"{key_of(one.id)} {offset:>{_OFFSET}} {len(line):>{_LENGTH}}\n")
            offset += len(line)
            if len(first) < _SHOWN:
                first.append({"id": one.id, "statement": one.statement[:_SHOWN_CHARACTERS]})
    (out / INDEX).write_text("".join(sorted(lines)))
    (out / FIRST).write_text(json.dumps(first))


if __name__ == "__main__":
    sys.exit(exit_status_of(main))
