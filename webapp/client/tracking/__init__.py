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

from webapp.client.tracking import hooks, plot
from webapp.client.tracking.media import (
    Audio,
    Histogram,
    Html,
    Image,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Text,
    Video,
)
from webapp.client.tracking.runs import Finished, Run
from webapp.client.tracking.sender import say
from webapp.client.tracking.start import InitRefused, new_key, start
from webapp.client.tracking.unsupported import Artifact, NotSupported, Settings, refuser

__all__ = [
    "AlertLevel", "Api", "Artifact", "Audio", "Error", "Finished", "Histogram", "Html", "Image",
    "InitRefused", "Molecule", "NotStarted", "NotSupported", "Object3D", "Plotly", "Run",
    "Settings", "Table", "Text", "Video", "agent", "alert", "controller", "define_metric",
    "finish", "init", "join", "link_model", "log", "log_artifact", "log_model", "login",
    "mark_preempting", "plot", "plot_table", "require", "restore", "save", "setup", "sweep",
    "teardown", "termerror", "termlog", "termwarn", "unwatch", "use_artifact", "use_model", "util",
    "watch",
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
    settings: Any = None,
    sync_tensorboard: bool | None = None,
    **ignored: Any,
) -> Run:
    """Starts a run, or resumes the one of `id`, and returns it.

    `project` is a project's name or number, `entity` its workspace. `mode`: online, offline (kept
    in `dir`, sent by `grove sync`), or disabled. `resume`: allow continues the run of `id` or
    creates it, must only continues, never (the default) only creates, auto continues the newest run
    in `dir` that did not end. Of `settings` (`Settings`, or a dictionary), `mode`, `run_id` and
    `run_name` count where the argument itself is not given. Other arguments of W&B's `init` are
    accepted, and change nothing. A run that is under way is finished first.

    Raises:
        InitRefused: an argument is invalid, or the server refuses: another process logs to the run.
    """
    finish()
    given = settings if isinstance(settings, Mapping) else vars(settings) if settings else {}
    mode, id = mode or given.get("mode"), id or given.get("run_id")
    name = name or given.get("run_name")
    if sync_tensorboard:
        say("sync_tensorboard: not followed here; use: grove import-tensorboard FOLDER --follow")
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


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    """Ends the current run, if there is one (`Run.finish`)."""
    for run in list(_current):
        run.finish(exit_code or 0, quiet)


def alert(title: str, text: str = "", level: Any = "INFO", **_: Any) -> None:
    current().alert(title, text, level)


def define_metric(name: str, step_metric: Any = None, **_: Any) -> None:
    """Names the number that is the step of others (`Run.define_metric`)."""
    current().define_metric(name, step_metric)


def watch(*_: Any, **__: Any) -> None:
    """Does nothing: log the histograms that you need."""


unwatch = watch


def save(*_: Any, **__: Any) -> list[str]:
    """Keeps no file, and says so once."""
    return current().save()


def log_artifact(artifact: Any = None, *_: Any, **__: Any) -> Any:
    """Keeps no file, says so once, and returns the artifact."""
    return current().log_artifact(artifact)


log_model = link_model = log_artifact
join = finish
plot_table = plot.plot_table
Api = refuser("Api", "webapp.client.Grove reads runs, events and points of this server")
sweep = refuser("sweep", "make the sweep on the page of an experiment, or call init in a loop")
agent = refuser("agent", "make the sweep on the page of an experiment, or call init in a loop")
controller = refuser("controller", "make the sweep on the page of an experiment")
use_artifact, use_model, restore = Run.use_artifact, Run.use_model, Run.restore


class util:
    """W&B's module of this name, as far as programs name runs by it."""

    @staticmethod
    def generate_id(length: int = 8) -> str:
        """Returns a new id of a run."""
        return new_key(length)


def mark_preempting() -> None:
    """Does nothing: a run that was cut off resumes by `init(id=..., resume="allow")`."""


def setup(*_: Any, **__: Any) -> None:
    """Does nothing: there is no service to start."""


require = teardown = setup


def termlog(string: str = "", *_: Any, **__: Any) -> None:
    """Writes a line to stderr."""
    say(string)


termwarn = termerror = termlog


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
