"""Small real datasets, stored without reading a file: for tests that only need them to exist."""

from __future__ import annotations

import json
from io import BytesIO

from engine.problems.generator import make_problem
from engine.problems.identity import content_hash, set_hash_of
from engine.problems.problem import Problem
from engine.problems.records import record
from tests.helpers.builders import Cast
from webapp.accounts.models import User
from webapp.artifacts import store
from webapp.artifacts.models import Upload
from webapp.artifacts.services import append, begin, finish
from webapp.datasets.models import Dataset, DatasetProblem, DatasetVersion
from webapp.datasets.parsing.parser_process import row_of
from webapp.datasets.parsing.statistics import statistics
from webapp.datasets.services import next_number


def some_problems(number: int = 3, seed: int = 1) -> list[Problem]:
    """Generated problems, each with its reference and tests."""
    return [make_problem(seed, index)[0] for index in range(number)]


def lines_of(problems: list[Problem]) -> bytes:
    """A file in Grove's own format."""
    return b"".join(json.dumps(record(one)).encode() + b"\n" for one in problems)


def stored_version(
    cast: Cast,
    name: str = "stored",
    problems: list[Problem] | None = None,
    faulty: int | None = None,
) -> DatasetVersion:
    """A version as an upload leaves it; with `faulty`, as its check leaves it."""
    problems = some_problems() if problems is None else problems
    hashes = [content_hash(one) for one in problems]
    dataset, _ = Dataset.objects.get_or_create(project=cast.project, name=name)
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=next_number(dataset),
        spec={"uploads": [], "format": "grove"},
        content_hash=set_hash_of(hashes),
        artifact=store.put([lines_of(problems)]),
        statistics=statistics(problems, 0),
        faulty=faulty,
        created_by=cast.bob,
    )
    offset = 0
    for number, one in enumerate(problems, start=1):
        length = len(lines_of([one]))
        row = row_of(one, hashes[number - 1], offset, length)
        DatasetProblem.objects.create(version=version, number=number, **row)
        offset += length
    return version


def a_finished_upload(cast: Cast, user: User, content: bytes | None = None) -> Upload:
    """A finished upload of a file of problems."""
    content = lines_of(some_problems()) if content is None else content
    kind = Upload.Kind.DATASET
    upload = begin(cast.project, user, kind, "problems.jsonl", len(content))
    return finish(append(upload, 0, BytesIO(content)))
