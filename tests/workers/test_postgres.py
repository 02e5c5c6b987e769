"""Tests of the embedded Postgres: starts, keeps its data, and never outlives its holder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.helpers.waiting import patience
from workers.local.errors import StartError
from workers.local.postgres import EmbeddedPostgres, end_leftover, first_cause
from workers.processes import wait_ended

HOLDER = """
import sys, time
from pathlib import Path
from workers.local.postgres import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1])).start(), flush=True)
time.sleep(86_400)
"""


pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def database():
    """One database directory for the whole module: creating one takes most of a second."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "postgres"


def server_pid(directory: Path) -> int:
    return int((directory / "data" / "postmaster.pid").read_text().splitlines()[0])


def test_it_starts_and_keeps_its_data_over_a_restart(database):
    server = EmbeddedPostgres(database)
    url = server.start()
    with psycopg.connect(url) as connection:
        connection.execute("create table kept (word text)")
        connection.execute("insert into kept values ('árbol')")
    server.stop()
    assert not server.alive()
    with psycopg.connect(server.start()) as connection:
        assert connection.execute("select word from kept").fetchone() == ("árbol",)
    server.stop()


def test_it_listens_on_no_port_and_only_to_its_owner(database):
    server = EmbeddedPostgres(database)
    url = server.start()
    try:
        sockets = Path(psycopg.conninfo.conninfo_to_dict(url)["host"])
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert psutil.Process(server_pid(database)).net_connections("inet") == []
        assert psutil.Process(server_pid(database)).uids().effective != 0
        with pytest.raises(psycopg.OperationalError, match=r"[Pp]eer authentication"):
            psycopg.connect(url.replace("grove@", "stranger@"))
    finally:
        server.stop()


def test_a_second_holder_is_refused_by_name(database):
    server = EmbeddedPostgres(database)
    server.start()
    try:
        with pytest.raises(StartError, match="in use by another process"):
            EmbeddedPostgres(database).start()
        assert server.alive()
    finally:
        server.stop()


def test_a_killed_holder_leaves_no_server_and_the_next_start_works(database):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(database)], stdout=subprocess.PIPE, text=True
    )
    url = holder.stdout.readline().strip()
    with psycopg.connect(url) as connection:
        connection.execute("create table before_the_kill (n int)")
    process = psutil.Process(server_pid(database))
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=60 * patience())
    assert wait_ended([process], 60 * patience()) == []
    server = EmbeddedPostgres(database)
    with psycopg.connect(server.start()) as connection:
        connection.execute("select n from before_the_kill")
    server.stop()


def test_a_killed_server_starts_again_on_its_data(database):
    server = EmbeddedPostgres(database)
    url = server.start()
    with psycopg.connect(url) as connection:
        connection.execute("create table before_the_crash (n int)")
    os.kill(server_pid(database), signal.SIGKILL)
    server.stop()
    with psycopg.connect(server.start()) as connection:
        connection.execute("select n from before_the_crash")
    server.stop()


def test_a_stale_pid_file_with_the_pid_of_a_stranger_does_not_harm_the_stranger(tmp_path):
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}\n")
    end_leftover(tmp_path)
    assert not (tmp_path / "postmaster.pid").exists()


def test_a_path_too_long_for_a_socket_still_works(tmp_path):
    server = EmbeddedPostgres(tmp_path / ("long" * 30))
    url = server.start()
    try:
        assert psycopg.connect(url).execute("select 1").fetchone() == (1,)
    finally:
        server.stop()
        Path(psycopg.conninfo.conninfo_to_dict(url)["host"]).rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused by Postgres")
def test_as_root_it_works_below_a_directory_closed_to_others(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "postgres")
    try:
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        assert closed.stat().st_mode & 0o777 == 0o700
        assert closed.stat().st_uid == 0
    finally:
        server.stop()


def test_a_failed_initdb_gets_a_sentence_and_leaves_nothing_half_made(tmp_path):
    # A limit on file size stands in for a full disk: initdb fails half-way.
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000));"
        + HOLDER
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "postgres")],
        capture_output=True,
        text=True,
        timeout=120 * patience(),
    )
    last = result.stderr.strip().splitlines()[-1]
    assert "StartError: Postgres did not start in" in last
    assert not (tmp_path / "postgres" / "data").exists()
    assert not (tmp_path / "postgres" / "data.unfinished").exists()


def test_a_database_that_is_not_made_in_time_names_the_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("GROVE_POSTGRES_START_SECONDS", "0.001")
    with pytest.raises(StartError) as failure:
        EmbeddedPostgres(tmp_path / "pg").start()
    assert failure.value.sentence.endswith("initdb took over 0.001 s.")
    assert failure.value.remedy.startswith(
        "On a busy machine raise GROVE_POSTGRES_START_SECONDS or GROVE_PATIENCE. See "
    )


def test_the_first_cause_is_reported_before_the_noise():
    log = (
        "2026-01-01 LOG:  starting\n"
        '2026-01-01 FATAL:  could not write lock file "postmaster.pid": No space left on device\n'
        "2026-01-01 FATAL:  something that follows from it\n"
    )
    assert first_cause(log).endswith("No space left on device")


def test_the_remedy_for_a_full_disk_is_to_free_space(tmp_path):
    failure = EmbeddedPostgres(tmp_path)._failure("could not extend file: No space left on device")
    assert "Free some space" in failure.remedy
