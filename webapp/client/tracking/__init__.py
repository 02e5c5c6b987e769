"""Tracking of any training program's run: `init`, `log`, `finish`, with W&B's names and habits.

import grove

grove.init(project="Oaks", config={"lr": 1e-4})
grove.log({"loss": 0.5})
grove.finish()

One run at a time is the module's: the newest that `init` returned. Everything is kept in a spool on
this machine first, and sent by a thread (`spool`, `sender`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from webapp.client.tracking import hooks
from webapp.client.tracking.media import Audio, Histogram, Html, Image, Table, Text, Video
from webapp.client.tracking.runs import Finished, Run
from webapp.client.tracking.start import InitRefused, start

__all__ = [
    "AlertLevel", "Audio", "Error", "Finished", "Histogram", "Html", "Image", "InitRefused",
    "NotStarted", "Run", "Table", "Text", "Video", "alert", "define_metric", "finish", "init",
    "log", "login", "unwatch", "watch",
]  # fmt: skip

Error = InitRefused
_current: list[Run] = []


class NotStarted(RuntimeError):
    """Raised if something is logged before `init`."""


class AlertLevel:
    INFO, WARN, ERROR = "INFO", "WARN", "ERROR"


def init(
    project: str | int | None = None,
    entity: str | None = None,
    name: str | None = None,
    id: str | None = None,
    config: Any = None,
    tags: Sequence[str] | None = None,
    group: str | None = None,
    notes: str | None = None,
    dir: str | os.PathLike[str] | None = None,
    mode: str | None = None,
    resume: str | bool | None = None,
    reinit: Any = None,
    **ignored: Any,
) -> Run:
    """Starts a run, or resumes the one of `id`, and returns it.

    `project` is a project's name or number, `entity` its workspace. `mode`: online, offline (kept
    in `dir`, sent by `grove sync`), or disabled. `resume`: allow continues the run of `id` or
    creates it, must only continues, never (the default) only creates, auto continues the newest run
    in `dir` that did not end. Other arguments of W&B's `init` are accepted, and change nothing.
    A run that is under way is finished first.

    Raises:
        InitRefused: an argument is invalid, or the server refuses: another process logs to the run.
    """
    finish()
    run = start(project, entity, name, id, config, tags, group, notes, dir, mode, resume)
    _current.append(run)
    run.after_end(lambda: _current.remove(run))
    hooks.install(_end)
    return run


def log(
    data: Mapping[str, Any], step: int | None = None, commit: bool | None = None,
    sync: bool | None = None,
) -> None:  # fmt: skip
    """Logs values to the current run (`Run.log`). Raises `NotStarted` before `init`."""
    current().log(data, step, commit)


def finish(exit_code: int = 0, quiet: bool | None = None) -> None:
    """Ends the current run, if there is one (`Run.finish`)."""
    for run in list(_current):
        run.finish(exit_code, quiet)


def alert(title: str, text: str = "", level: Any = "INFO", **_: Any) -> None:
    current().alert(title, text, level)


def define_metric(*_: Any, **__: Any) -> None:
    """Does nothing: charts offer every axis."""


def watch(*_: Any, **__: Any) -> None:
    """Does nothing: log the histograms that you need."""


unwatch = watch


def login(*_: Any, **__: Any) -> bool:
    """Returns True, for programs that call W&B's: `grove login` stores a token."""
    return True


def current() -> Run:
    """Returns the run of this module. Raises `NotStarted` before `init`."""
    if not _current:
        raise NotStarted("call grove.init() first")
    return _current[-1]


def run_or_none() -> Run | None:
    """Returns the run of this module; None without one."""
    return _current[-1] if _current else None


def _end(code: int, error: BaseException | None) -> None:
    """Ends the current run with the program."""
    if _current and error is not None:
        _current[-1].fail(error)
    finish(exit_code=code)


def __getattr__(name: str) -> Any:
    """`run`, `config` and `summary` of the current run; `run` is None without one."""
    if name == "run":
        return run_or_none()
    if name in ("config", "summary"):
        return getattr(current(), name)
    raise AttributeError(f"module 'grove' has no attribute {name!r}")
