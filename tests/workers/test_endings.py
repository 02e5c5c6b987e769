"""Tests of what a command that starts everything says when it ends early.

`test_interrupted_up.py` has the same with its processes.
"""

from __future__ import annotations

import errno
import io
import os
import signal
from contextlib import suppress

import psycopg
import pytest
from django.db import OperationalError
from rich.console import Console

from engine.config.errors import ConfigError
from tests.helpers.waiting import patience
from webapp import manage
from workers.local.endings import ended_in_order, explain
from workers.local.errors import StartError
from workers.local.lock import VarLock
from workers.local.progress import Progress
from workers.local.service import Service
from workers.local.signals import ShutdownRequested
from workers.local.supervisor import Supervisor


@pytest.fixture
def supervisor(settings, tmp_path, monkeypatch):
    """It holds its data directory and has started nothing."""
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.delenv("DATABASE_URL", raising=False)
    settings.GROVE_VAR = tmp_path / "var"
    one = Supervisor(Progress(Console(file=io.StringIO(), width=200, soft_wrap=True)))
    one._lock.take()
    yield one
    for number, handler in before.items():
        signal.signal(number, handler)


def said(supervisor, block, status=None, **options):
    """What is said when `block` is what the command does; it has to end with this status."""
    with pytest.raises(SystemExit) as ended, ended_in_order(supervisor, "It failed", **options):
        block()
    assert ended.value.code == status
    assert not supervisor.holds_var, "the services were stopped"
    return supervisor.progress.console.file.getvalue()


def interrupted(supervisor, error=None):
    """A step that a SIGTERM interrupts, and whose library makes of that an error of its own."""

    def block():
        with supervisor.progress.step("Preparing the database"):
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                raise AssertionError("the signal did not interrupt it")
            except ShutdownRequested:
                if error is not None:
                    raise error from None
                raise

    return block


@pytest.mark.parametrize("error", [None, OperationalError("sending query failed"), ValueError("x")])
def test_a_signal_comes_before_the_error_of_what_it_interrupted(supervisor, error):
    text = said(supervisor, interrupted(supervisor, error), 130, status_of_signal=130)
    assert "Stopped by SIGTERM while preparing the database." in text
    assert f"{supervisor.var} is kept: start again with `make run`." in text
    assert "It failed" not in text and "sending query" not in text


def test_a_signal_whose_exception_was_swallowed_ends_the_next_step(supervisor):
    def block():
        # A library, or a finaliser, may swallow it.
        with supervisor.progress.step("Preparing the database"), suppress(ShutdownRequested):
            os.kill(os.getpid(), signal.SIGINT)
        with supervisor.progress.step("Registering the starter agents"):
            raise AssertionError("the step began")

    text = said(supervisor, block, 0)
    assert "Stopped by SIGINT while registering the starter agents." in text
    assert "Registering" not in text


def test_a_second_signal_cuts_nothing_short(supervisor):
    def block():
        with supervisor.progress.step("Preparing the database"):
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGINT)

    assert "Stopped by SIGTERM while" in said(supervisor, block, 0)


@pytest.mark.parametrize(
    "error, expected",
    [
        (StartError("No port.", "Take one."), "No port.\nTake one.\n"),
        (ConfigError([{"path": "a", "value": 1, "reason": "too small"}]), "too small"),
        (PermissionError("the link did not work: 410"), "the link did not work: 410\n"),
        (OSError(errno.ENOSPC, "full"), "is on a full disk. Free some space"),
        (KeyError("x"), "It failed: KeyError: 'x'. See "),
    ],
)
def test_an_error_is_said_with_its_remedy(supervisor, error, expected):
    def block():
        raise error

    text = said(supervisor, block, 1)
    assert expected in text and "Stopped by" not in text


def test_a_status_of_the_block_is_kept_and_says_nothing_more(supervisor):
    def block():
        raise SystemExit(7)

    assert said(supervisor, block, 7) == ""


def test_a_block_that_ends_by_itself_ends_the_services(supervisor):
    with ended_in_order(supervisor, "It failed"):
        assert supervisor.holds_var
    assert not supervisor.holds_var


def test_a_full_disk_of_the_database_is_one_too(tmp_path, monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    error = OperationalError("could not extend file")
    error.__cause__ = psycopg.errors.DiskFull("could not extend file")
    assert "on a full disk" in explain(error, tmp_path)


def test_a_traceback_that_cannot_be_written_hides_no_error(tmp_path):
    (tmp_path / "logs").touch()
    text = explain(KeyError("x"), tmp_path)
    assert text.startswith("KeyError: 'x'. Its traceback cannot be written: ")


def test_ctrl_c_before_a_command_handles_signals_is_one_line(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(manage, "execute_from_command_line", interrupted)
    with pytest.raises(SystemExit) as ended:
        manage.main(["manage.py", "up"])
    assert ended.value.code == 130 and capsys.readouterr().err == "Interrupted by Ctrl-C.\n"


def test_a_holder_that_has_no_address_yet_is_said_to_be_starting(tmp_path):
    first, second = VarLock(tmp_path), VarLock(tmp_path)
    first.take()
    try:
        with pytest.raises(StartError, match=r"running on \S+, and is just starting\."):
            second.take()
        first.note("http://localhost:8000")
        with pytest.raises(StartError, match=r"running on \S+, at http://localhost:8000\."):
            second.take()
    finally:
        first.release()


def test_signals_are_ignored_from_the_end_of_the_block_on(supervisor):
    with ended_in_order(supervisor, "It failed"):
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN, "nothing cuts the end short"


@pytest.mark.parametrize(
    "program, cause",
    [
        ("echo noise; kill -9 $$", "it ended by SIGKILL"),
        ("echo first; echo the port is taken; exit 3", "the port is taken"),
        ("exit 4", "it ended with exit status 4"),
    ],
)
def test_why_a_service_ended_is_its_signal_or_its_own_last_line(tmp_path, program, cause):
    log = tmp_path / "web.log"
    log.write_text("a line of an earlier start\n")
    command = ["sh", "-c", program]
    service = Service("web", command, log, dict(os.environ), tmp_path, 5.0, signal.SIGKILL)
    service.start()
    service.process.wait(60 * patience())
    assert service.cause_of_end() == cause
    how = "by SIGKILL" if "kill" in program else f"with exit status {program[-1]}"
    assert service.restart_if_dead().startswith(f"The web ended ({how}; see {log})")
    service.stop()
