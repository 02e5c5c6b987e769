"""The end of a command that runs all services: in order, and with its first cause.

Invariant: a signal comes before the error of what it interrupted, and a dead Postgres before the
errors of its clients; where a command was ended early, it says what is kept and what to do next.
"""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.db import OperationalError

from engine.config.errors import ConfigError
from webapp.config.installation import UP
from workers.local.errors import StartError
from workers.local.signals import first_signal, ignore_signals, raise_on_signals
from workers.local.supervisor import Supervisor

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def ended_in_order(supervisor: Supervisor, what: str, status_of_signal: int = 0) -> Iterator[None]:
    """Runs its block until a signal; however the block ends, ends the services after it. `what`
    begins the sentence about an unexpected error, as in "Grove did not start".

    Raises:
        SystemExit: with 1 after an error, with `status_of_signal` after a signal.
    """
    ended: BaseException | None = None
    raise_on_signals()
    try:
        try:
            yield
        finally:
            ignore_signals()
    except BaseException as error:
        ended = error
    sentences = _sentences(ended, supervisor, what)
    for sentence in sentences:
        supervisor.progress.say(sentence)
    was_interrupted, had_begun = bool(supervisor.progress.doing), supervisor.holds_var
    supervisor.stop()
    if first_signal() is not None:
        if was_interrupted and had_begun:
            supervisor.progress.say(
                f"Nothing runs any more, and {supervisor.var} is kept: start again with `{UP}`."
            )
        raise SystemExit(status_of_signal)
    if ended is not None:
        raise SystemExit(ended.code if isinstance(ended, SystemExit) else 1)


def _sentences(error: BaseException | None, supervisor: Supervisor, what: str) -> tuple[str, ...]:
    """Returns the lines that say why the block ended; none if it ended by itself."""
    if number := first_signal():
        doing = supervisor.progress.doing
        return (f"Stopped by {number.name} while {doing}.",) if doing else ("",)
    if error is None or isinstance(error, SystemExit):
        return ()
    if dead := supervisor.database_end():
        return dead.sentence, dead.remedy
    if isinstance(error, StartError):
        return error.sentence, error.remedy
    is_refused = isinstance(error, PermissionError) and error.errno is None  # by our own server
    if is_refused or isinstance(error, ConfigError):
        return (str(error),)
    return (f"{what}: {explain(error, supervisor.var)}",)


def explain(error: BaseException, var: Path) -> str:
    """Returns a sentence and a remedy for an unexpected error; writes its traceback to a file."""
    if _is_of_a_full_disk(error):
        return f"{var} is on a full disk. Free some space there and start again."
    if isinstance(error, OperationalError) and "DATABASE_URL" in os.environ:
        return f"the database of DATABASE_URL does not answer ({error}). Is its address right?"
    log = var / "logs" / "up.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(traceback.format_exception(error)))
    except OSError as unwritten:
        return f"{type(error).__name__}: {error}. Its traceback cannot be written: {unwritten}."
    return f"{type(error).__name__}: {error}. See {log}."


def _is_of_a_full_disk(error: BaseException) -> bool:
    """Whether the error, or one that it replaced, is of a full disk: ours or the database's."""
    one: BaseException | None = error
    while one is not None:
        if isinstance(one, psycopg.errors.DiskFull):
            return True
        if isinstance(one, OSError) and one.errno in _FULL:
            return True
        one = one.__cause__ or one.__context__
    return False
