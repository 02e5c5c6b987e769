"""Tracking of any training program's run: `init`, `log`, `finish`, with W&B's names and habits.

import grove

grove.init(project="Oaks", config={"lr": 1e-4})
grove.log({"loss": 0.5})
grove.finish()

One run at a time is the module's, which `init` returns until it is finished. Everything is kept in
a spool on this machine first, and sent by a thread (`spool`, `sender`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from webapp.client import login as _login
from webapp.client.tracking import hooks, plot
from webapp.client.tracking.arguments import resolved, selected
from webapp.client.tracking.errors import Error
from webapp.client.tracking.media import (
    Audio,
    Classes,
    EvalTable,
    Graph,
    Histogram,
    Html,
    Image,
    JoinedTable,
    Molecule,
    Object3D,
    Plotly,
    Table,
    Text,
    Video,
    box3d,
)
from webapp.client.tracking.run_config import Config
from webapp.client.tracking.runs import Run
from webapp.client.tracking.sender import say
from webapp.client.tracking.start import InitRefused, new_key, start
from webapp.client.tracking.unsupported import (
    TENSORBOARD,
    Artifact,
    ArtifactTTL,
    Metric,
    NotSupported,
    Settings,
    refuser,
    tensorboard,
)

__all__ = [
    "AlertLevel", "Api", "Artifact", "ArtifactTTL", "Audio", "Classes", "CommError", "Config",
    "Error", "EvalTable", "Graph", "Histogram", "Html", "Image", "InitRefused", "JoinedTable",
    "Molecule", "NotStarted", "NotSupported", "Object3D", "Plotly", "Run", "Settings", "Table",
    "Text", "UsageError", "Video", "agent", "alert", "api", "box3d", "controller", "define_metric",
    "ensure_configured", "finish", "init", "join", "link_model", "log", "log_artifact",
    "log_model", "login", "mark_preempting", "pin_config_keys", "plot", "plot_table", "require",
    "restore", "save", "setup", "sweep", "teardown", "tensorboard", "termerror", "termlog",
    "termsetup", "termwarn", "unwatch", "use_artifact", "use_model", "util", "visualize", "watch",
]  # fmt: skip

WANDB_VERSION = "0.31.0"
"""Version of W&B whose calls these are."""
UsageError = Error
_current: list[Run] = []
_others: list[Run] = []
"""Runs of `reinit="create_new"`, which end with the program at the latest."""
_FINISHING = (True, "finish_previous")


class CommError(Error):
    """W&B's error for a server that does not answer, which is never raised here: what is logged
    waits for the server."""


class NotStarted(Error, RuntimeError):
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
    config_exclude_keys: Sequence[str] | None = None,
    config_include_keys: Sequence[str] | None = None,
    job_type: str | None = None,
    **others: Any,
) -> Run:
    """Starts a run, or resumes the one of `id`, and returns it.

    `project` is a project's name or number, `entity` its workspace. `mode`: online, offline (kept
    in `dir`, sent by `grove sync`), or disabled. `resume`: allow continues the run of `id` or
    creates it, must only continues, never (the default) only creates, auto continues the newest run
    in `dir` that did not end. Of `settings` (`Settings`, or a dictionary), `mode`, `run_id` and
    `run_name` and the like count where the argument itself is not given. Other arguments of W&B's
    `init` are accepted, and change nothing.

    A run that is under way is returned as it is, in a notebook finished first, as by W&B's client.
    `reinit`: "finish_previous" (or True) finishes it, "create_new" lets both go on, of which the
    functions of this module log to the older one.

    Raises:
        InitRefused: an argument is invalid, or the server refuses: another process logs to the run.
    """
    arguments = resolved(
        {"project": project, "entity": entity, "name": name, "id": id, "tags": tags,
         "group": group, "notes": notes, "dir": dir, "mode": mode, "resume": resume,
         "reinit": reinit, **others}, settings,
    )  # fmt: skip
    again = arguments.pop("reinit")
    if previous := _under_way(again, arguments["resume"]):
        return previous
    if sync_tensorboard:
        say(TENSORBOARD)
    kept = selected(config, config_exclude_keys, config_include_keys)
    run = start(
        arguments["project"], arguments["entity"], arguments["name"], arguments["id"], kept,
        arguments["tags"], arguments["group"], arguments["notes"], arguments["dir"],
        arguments["mode"], arguments["resume"],
    )  # fmt: skip
    run.job_type = job_type or ""
    group_of_run = _others if _current else _current
    group_of_run.append(run)
    run.after_end(lambda: group_of_run.remove(run))
    hooks.install(_end)
    return run


def _under_way(reinit: Any, resume: Any) -> Run | None:
    """Returns the run that `init` returns instead of a new one; finishes one that has to end."""
    _current[:] = [run for run in _current if run.is_of_this_process]
    if not _current or reinit == "create_new":
        return None
    if reinit in _FINISHING or (reinit in (None, "default") and _is_notebook()):
        finish()
        return None
    if resume == "must":
        raise InitRefused("resume = 'must': a run is under way; finish it, or give "
                          "reinit='finish_previous'")  # fmt: skip
    say(f"init: the run {_current[-1].id} is under way, and goes on; call finish() before another, "
        "or give reinit='finish_previous'")  # fmt: skip
    return _current[-1]


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


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


def define_metric(name: str, step_metric: Any = None, **others: Any) -> Metric:
    """Names the number that is the step of others (`Run.define_metric`)."""
    return current().define_metric(name, step_metric, **others)


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


visualize = plot.visualize


class util:
    """W&B's module of this name, as far as programs name runs by it."""

    @staticmethod
    def generate_id(length: int = 8) -> str:
        """Returns a new id of a run."""
        return new_key(length)

    @staticmethod
    def make_artifact_name_safe(name: str) -> str:
        """Returns the name with letters, digits and any of _ - . alone."""
        return "".join(one if one.isalnum() or one in "_-." else "_" for one in name)[:128]


class _Api:
    """W&B's object of this name, by which programs look whether somebody is logged in."""

    @property
    def api_key(self) -> str | None:
        """A text that is no token; None if there is none."""
        try:
            _login.credentials()
        except (_login.NotLoggedIn, OSError, ValueError):
            return None
        return "kept by grove login"


api = _Api()


def mark_preempting() -> None:
    """Does nothing: a run that was cut off resumes by `init(id=..., resume="allow")`."""


def setup(*_: Any, **__: Any) -> None:
    """Does nothing: there is no service to start."""


require = teardown = ensure_configured = termsetup = pin_config_keys = setup
_said: set[str] = set()


def termlog(string: str = "", newline: bool = True, repeat: bool = True, **_: Any) -> None:
    """Writes a line to stderr; without `repeat`, once."""
    if repeat or string not in _said:
        _said.add(string)
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
    for run in list(_others):
        run.finish(code)


def __getattr__(name: str) -> Any:
    """`run`, `config` and `summary` of the current run; `run` is None without one."""
    if name == "run":
        return run_or_none()
    if name in ("config", "summary"):
        return getattr(current(), name)
    raise AttributeError(f"module 'grove' has no attribute {name!r}")
