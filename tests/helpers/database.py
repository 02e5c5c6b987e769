"""A migrated Postgres, built once and reused until the migrations change.

Invariant: a template is complete or absent, and no server ever runs on it: tests use copies.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.helpers.waiting import patience
from workers.local.postgres import EmbeddedPostgres

ROOT = Path(__file__).resolve().parents[2]
DECIDING = (
    "webapp/*/migrations/*.py",
    "webapp/config/settings.py",
    "workers/local/postgres.py",
    "tests/helpers/database.py",
    "constraints.txt",
)
"""Files that determine a migrated database: its tables, the code that runs them, the Postgres."""
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""A test's database need not survive a crash of its machine."""
MIGRATION_SECONDS = 300.0


def a_migrated_postgres(directory: Path, templates: Path) -> EmbeddedPostgres:
    """Returns a server on `directory`, not yet started; its database `grove` has every table.

    `templates` is the folder of the cached template.
    """
    directory.mkdir(mode=0o700, parents=True)
    shutil.copytree(_template(templates), directory / "data")
    return EmbeddedPostgres(directory, QUICK)


def _template(templates: Path) -> Path:
    expected = templates / _content()
    with (templates / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of a suite's two processes, one builds it
        if not expected.exists():
            for old in templates.glob("*/"):
                shutil.rmtree(old)
            with tempfile.TemporaryDirectory() as folder:
                made = _migrate(Path(folder) / "postgres")
                unfinished = templates / "unfinished"
                shutil.copytree(made, unfinished)
            unfinished.rename(expected)
    return expected


def _migrate(directory: Path) -> Path:
    """Migrates a database there; returns the folder of its files after its server has stopped."""
    server = EmbeddedPostgres(directory, QUICK)
    environment = {**os.environ, "DATABASE_URL": server.start()}
    try:
        subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity=0"],
            env={**environment, "GROVE_VAR": str(directory / "var")},
            timeout=MIGRATION_SECONDS * patience(),
            check=True,
        )
    finally:
        server.stop()
    return server.data


def _content() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in DECIDING for path in ROOT.glob(pattern)):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]
