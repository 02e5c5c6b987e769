"""Dumps of released schemas, which every later version has to migrate.

    python -m tests.helpers.kept_dump [NAME]

writes `tests/data/schemas/NAME.sql.xz`, by default named by the version, of this checkout: run it
when a version is released, and never change one that is there.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import webapp
from tests.helpers.database import ROOT, a_migrated_postgres
from tests.helpers.waiting import patience
from workers.local.postgres import binaries_directory

DUMPS = ROOT / "tests" / "data" / "schemas"
SECONDS = 300.0


def restore_dump(dump: Path, url: str) -> None:
    """Runs a dump in the empty database of `url`."""
    with lzma.open(dump) as text:
        _program("psql", url, "--quiet", "--set=ON_ERROR_STOP=1", input=text.read())


def write_dump(path: Path, url: str) -> None:
    """Writes the database of `url` as one file."""
    text = _program("pg_dump", url, "--no-owner", "--no-privileges")
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


def _program(name: str, url: str, *options: str, input: bytes | None = None) -> bytes:
    done = subprocess.run(
        [binaries_directory() / name, f"--dbname={url}", *options],
        input=input, stdout=subprocess.PIPE, check=True, timeout=SECONDS * patience(),
    )  # fmt: skip
    return done.stdout


def main(name: str = webapp.__version__) -> None:
    """Fills a new database with rows of every kind, and dumps it."""
    with tempfile.TemporaryDirectory() as folder:
        templates = Path(folder) / "templates"
        templates.mkdir()
        server = a_migrated_postgres(Path(folder) / "postgres", templates)
        url = server.start()
        try:
            code = "from tests.helpers.kept_dump import fill; fill()"
            subprocess.run(
                [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", code],
                env={**os.environ, "DATABASE_URL": url, "GROVE_VAR": str(Path(folder) / "var")},
                check=True, timeout=SECONDS * patience(),
            )  # fmt: skip
            path = DUMPS / f"{name}.sql.xz"
            write_dump(path, url)
            print(f"{path}: {path.stat().st_size} bytes")
        finally:
            server.stop()


def fill() -> None:
    """Adds rows of many kinds to the database of this process, a replayable run among them."""
    from engine.events.vocabulary import RunState
    from tests.helpers.builders import (
        a_cast,
        a_held_run,
        a_registry,
        a_run,
        a_search,
        a_token,
        store,
    )  # fmt: skip
    from tests.helpers.sample_log import Sample, sample_events
    from tests.helpers.site import SampleRun
    from webapp.accounts.models import Scope
    from webapp.artifacts.store import put
    from webapp.celery import app

    app.conf.update(broker_url="memory://", broker_transport_options={})
    cast = a_cast()
    put([b"weights"])
    a_registry(cast)
    a_search(cast)
    a_run(cast, RunState.FINISHED)
    run, fencing = a_held_run(cast)
    store(run, fencing, 40)
    a_token(cast.alice, cast.project, Scope.RUNS_READ)
    sample = Sample(steps=2, trees=2, nodes=3)
    played = SampleRun(sample)
    played.feed(sample_events(sample))
    played.end("finished")


if __name__ == "__main__":
    main(*sys.argv[1:])
