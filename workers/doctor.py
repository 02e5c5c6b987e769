"""Checks of what a server needs on this machine. They start nothing.

Waits: for the version of Postgres (`deadlines.PROGRAM_ANSWER`), and for a database, a broker or a
page that is reached over the network (`deadlines.NETWORK_ANSWER` each).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from http import HTTPStatus

import psycopg
from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError

from engine.config.deadlines import NETWORK_ANSWER, PROGRAM_ANSWER
from webapp.client.doctor import FAILED, OK, WARNING, Check
from webapp.config.checks import var_is_private, var_is_writable
from workers.local.errors import StartError
from workers.local.health import health
from workers.local.lock import take_port
from workers.local.postgres import binaries_directory

MIN_FREE_BYTES = 1 << 30
"""On the data directory's disk: for a new database, logs and the first checkpoints of the demo."""


def checks() -> Iterator[Check]:
    """Yields every check, in the order in which a start needs them."""
    yield _data_directory()
    yield _disk()
    yield _database() if "DATABASE_URL" in os.environ else _postgres()
    yield _broker()
    yield _port()


def _data_directory() -> Check:
    for status, messages in ((FAILED, var_is_writable(None)), (WARNING, var_is_private(None))):
        for message in messages:
            return Check("data directory", status, message.msg, message.hint or "")
    return Check("data directory", OK, str(settings.GROVE_VAR))


def _disk() -> Check:
    existing = next(
        path for path in (settings.GROVE_VAR, *settings.GROVE_VAR.parents) if path.exists()
    )
    free = shutil.disk_usage(existing).free
    text = f"{free / (1 << 30):.1f} GiB free in {existing}"
    if free < MIN_FREE_BYTES:
        return Check("disk", FAILED, text, "free 1 GiB there, or point GROVE_VAR elsewhere")
    return Check("disk", OK, text)


def _postgres() -> Check:
    """Checks the programs of the embedded server."""
    try:
        program = binaries_directory() / "postgres"
        done = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            text=True,
            timeout=PROGRAM_ANSWER.seconds,
        )
    except StartError as error:
        return Check("postgres", FAILED, error.sentence, error.remedy)
    except subprocess.TimeoutExpired as error:
        return Check("postgres", FAILED, str(error), PROGRAM_ANSWER.remedy)
    except OSError as error:
        return Check("postgres", FAILED, str(error), "set DATABASE_URL to a server of yours")
    if done.returncode != 0:
        return Check(
            "postgres", FAILED, done.stderr.strip(), "set DATABASE_URL to a server of yours"
        )
    return Check("postgres", OK, f"{done.stdout.strip()}, embedded")


def _database() -> Check:
    """Checks the server of DATABASE_URL."""
    try:
        with psycopg.connect(
            settings.DATABASE_URL, connect_timeout=NETWORK_ANSWER.whole_seconds
        ) as connection:
            row = connection.execute("SHOW server_version").fetchone()
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        return Check(
            "postgres", FAILED, f"DATABASE_URL does not answer: {reason}", _remedy("its address")
        )
    return Check("postgres", OK, f"{row[0] if row else 'unknown'}, of DATABASE_URL")


def _broker() -> Check:
    url = settings.BROKER_URL
    if url.startswith("filesystem"):
        return Check("broker", OK, f"the folder {settings.BROKER_DIR}")
    with Connection(url, connect_timeout=NETWORK_ANSWER.whole_seconds) as connection:
        shown = connection.as_uri()  # without its password
        try:
            connection.ensure_connection(max_retries=1, timeout=NETWORK_ANSWER.whole_seconds)
        except (OperationalError, OSError) as error:
            return Check(
                "broker", FAILED, f"{shown} does not answer: {error}", _remedy("BROKER_URL")
            )
    return Check("broker", OK, f"{shown} answers")


def _port() -> Check:
    port = settings.GROVE_PORT
    try:
        take_port(port).close()
    except StartError as error:
        if _grove_answers(port):
            return Check("port", OK, f"{port}, in use by a running Grove")
        return Check("port", FAILED, error.sentence, error.remedy)
    return Check("port", OK, f"{port} is free" if port else "any that is free")


def _remedy(what: str) -> str:
    return f"check {what}; {NETWORK_ANSWER.remedy}"


def _grove_answers(port: int) -> bool:
    return health(port, NETWORK_ANSWER.seconds) == HTTPStatus.OK
