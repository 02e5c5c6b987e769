"""Tests that no value of an export, however odd, is more than a refusal."""

from __future__ import annotations

import json
import zipfile
from functools import partial

import pytest
from django.db import transaction

from tests.helpers.luck import luck
from tests.helpers.workspace_zips import changed, exported
from tests.webapp.offboarding.test_imports import full, rows_now  # noqa: F401
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports.services import import_workspace

ODD = (
    None, True, -1, 0, 2**31, 2**63, 2**64, 10**40, 1e308, 1.5, "", "\0", "x" * 70_000, "\ud800",
    "../../etc/passwd", "2026-11-28", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00",
    "00000000-0000-0000-0000-000000000000", [], {}, [None], [[[]]], {"": None}, {"a": {"b": [1]}},
    float("inf"), float("nan"),
)  # fmt: skip
MUTATIONS = 8


@pytest.mark.large
@pytest.mark.slow
def test_an_odd_value_anywhere_is_refused_or_imported(cast, full, tmp_path):  # noqa: F811
    draw = luck()
    path = exported(cast, tmp_path / "x.zip")
    with zipfile.ZipFile(path) as file:
        rows = [name for name in file.namelist() if name.endswith((".jsonl", ".ndjson"))]
        tables = [name for name in ("workspace.json", *rows) if file.read(name).strip()]
    refused = 0
    for _ in range(MUTATIONS):
        name, odd = draw.choice(tables), draw.choice(ODD)
        chosen: list[str] = []
        change = partial(mutated, odd=odd, draw=draw, chosen=chosen)
        data = changed(path, {name: change})
        damaged = tmp_path / "damaged.zip"
        damaged.write_bytes(data)
        before = rows_now()
        try:
            with transaction.atomic():
                import_workspace(damaged, cast.alice, name="Copy")
                transaction.set_rollback(True)
        except ImportRefused as error:
            refused += 1
            assert rows_now() == before, (name, chosen, odd)
            assert len(str(error)) > 30
        except Exception as error:
            raise AssertionError(f"{name} {chosen} {odd!r}") from error
    assert refused


def mutated(row, odd, draw, chosen):
    """The row with one value, at any depth, replaced once per file."""
    if chosen and draw.random() < 0.9:
        return row
    value = json.loads(json.dumps(row))
    where = value
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        if not keys:
            return value
        key = draw.choice(keys)
        below = where[key]
        if isinstance(below, (dict, list)) and below and draw.random() < 0.6:
            where = below
            continue
        where[key] = odd
        chosen.append(key)
        return value
