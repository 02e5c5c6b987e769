"""A run that a program logs: `log`, `config`, `summary`, `alert`, `finish`, and its trees.

Invariants: nothing here waits for the server but `finish` (`sender.FINISH_SECONDS`), and nothing
raises because the server or the disk fails. A process that was forked from the run's own logs
nothing.
"""

from __future__ import annotations

import html
import os
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webapp.client.tracking import limits, room, values
from webapp.client.tracking.axes import LARGEST_STEP, Axes, whole
from webapp.client.tracking.records import encode, encoded_now, tags_of
from webapp.client.tracking.run_config import Config, Summary
from webapp.client.tracking.sender import Background, say
from webapp.client.tracking.spool import Spool
from webapp.client.tracking.unsupported import FILES, Metric, refuser
from webapp.client.tracking.unsupported import Settings as GivenSettings


class Run:
    """A run of this process. `init` returns one; use it as a context manager, or `finish` it."""

    def __init__(
        self, spool: Spool | None, background: Background | None, *, step: int = 0, url: str = "",
        resumed: bool = False, key: str = "disabled",
    ):  # fmt: skip
        """Without a spool nothing is kept (mode disabled); without a background it is not sent."""
        self._spool, self._background = spool, background
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._said: set[str] = set()
        self.is_over = False
        """Whether the run is finished here; nothing can be logged to it any more."""
        self.is_sent = False
        """Whether it is finished, and the server has all of it."""
        self._after: list[Callable[[], None]] = []
        self._trees = 0
        self.step = step
        """Step of the next values that are logged without one."""
        self.starting_step, self.start_time = step, time.time()
        """Step at which this process began, and Unix time of it."""
        self.url, self.resumed, self._key = url, resumed, key
        self.sweep_id: str | None = None
        """W&B's, always None: a sweep is made on the page of an experiment."""
        self.sweep_url: str | None = None
        self.project_url: str | None = None
        self.job_type = ""
        self._axes = Axes()
        self._names = room.Names()
        self._room = {"config": room.Settings(), "summary": room.Settings()}
        self._tags: tuple[str, ...] = ()
        self._notes = ""
        self.config = Config(lambda added: self._describe("config", added))
        self.summary = Summary(lambda added: self._describe("summary", added))

    @property
    def id(self) -> str:
        return self._spool.header.key if self._spool else self._key

    @property
    def name(self) -> str:
        return self._spool.header.name if self._spool else ""

    @name.setter
    def name(self, value: Any) -> None:
        self._warn_once(f"name = {str(value)!r}: a run keeps its name; give it to init(name=...)")

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags that this process gave the run; assign others to replace them."""
        return self._tags

    @tags.setter
    def tags(self, tags: Sequence[str]) -> None:
        self.describe(tags=tags)

    @property
    def notes(self) -> str:
        """Notes that this process gave the run; assign others to replace them."""
        return self._notes

    @notes.setter
    def notes(self, notes: str | None) -> None:
        self.describe(notes=notes or "")

    @property
    def group(self) -> str:
        return self._spool.header.group if self._spool else ""

    @property
    def project(self) -> str:
        return self._spool.header.project if self._spool else ""

    @property
    def entity(self) -> str:
        return self._spool.header.entity if self._spool else ""

    @property
    def settings(self) -> GivenSettings:
        """What the run is, by the names of W&B's settings."""
        mode = "disabled" if self.disabled else "offline" if self.offline else "online"
        return GivenSettings(
            run_id=self.id, run_name=self.name, run_group=self.group, project=self.project,
            entity=self.entity, mode=mode, run_url=self.url, files_dir=self.dir,
        )  # fmt: skip

    @property
    def dir(self) -> str:
        """Folder of the spool; of a disabled run that of temporary files, where programs write
        theirs."""
        return str(self._spool.path.parent) if self._spool else tempfile.gettempdir()

    sync_dir = dir

    @property
    def config_static(self) -> Config:
        """The settings, as W&B's older name."""
        return self.config

    @property
    def problem(self) -> OSError | None:
        """Why the spool cannot be written; None while it can."""
        return self._spool.problem if self._spool else None

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process began it, and not one that it was forked from."""
        return os.getpid() == self._process

    @property
    def offline(self) -> bool:
        return self._background is None

    @property
    def disabled(self) -> bool:
        return self._spool is None

    @property
    def stop_requested(self) -> bool:
        """Whether somebody pressed Stop on the run's page: end the training, and `finish`."""
        status = self._background.sender.status if self._background else None
        return bool(status and status.stop_requested)

    def log(
        self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None,
        sync: bool | None = None,
    ) -> None:  # fmt: skip
        """Logs named values of a step: numbers, texts, `Table`, `Histogram`, nested dictionaries.

        Without `step` each call is a step of its own, unless `commit` is false: then the next call
        belongs to the same step. A value of an earlier step is kept with that step. The number that
        `define_metric` names as the axis of a value is its step, whatever `step` is. What is no
        step counts as none, and what is logged after `finish` is left out; stderr says so once.

        Raises:
            TypeError: `data` is no dictionary with texts as keys.
        """
        step = self._given_step(step)
        if self._axes and isinstance(data, Mapping):
            split = self._axes.split(data)
            by_step = {axis: values.sorted_values(part) for axis, part in split.items()}
        else:
            by_step = {None: values.sorted_values(data)}
        given = self.step if step is None else step
        self.step = max(self.step, given)
        for axis, fields in by_step.items():
            if fields:
                self._write(fields, given if axis is None else axis)
            if numbers := fields.get("numbers"):
                self.summary._noted(numbers)
        if commit if commit is not None else step is None:
            self.step += 1

    def alert(self, title: str, text: str = "", level: Any = "INFO", **_: Any) -> None:
        """Records a message in the run's log; `level`: INFO, WARN or ERROR."""
        shown = str(getattr(level, "value", level)).lower()
        level = {"warn": "warning", "error": "error"}.get(shown, "info")
        message = values.text_of(f"{title}: {text}" if text else str(title))
        self._emit("log.line", {"level": level, "message": message})

    def finish(self, exit_code: int | None = 0, quiet: bool | None = None) -> None:
        """Ends the run, as failed if `exit_code` is not 0, and sends what is left. A repeated call
        does nothing."""
        if self.is_over or self._is_foreign():
            return
        state = "stopped" if self.stop_requested else "finished"
        reason = ""
        if exit_code:
            state, reason = "failed", f"the program ended with exit code {exit_code}"
        self._emit("run.state", {"state": state, "reason": reason})
        self.is_over = True
        if self._spool is not None:
            self._close(self._spool, quiet)
        for call in self._after:
            call()

    def after_end(self, call: Callable[[], None]) -> None:
        """Has `call` called when the run is over."""
        self._after.append(call)

    def _close(self, spool: Spool, quiet: bool | None) -> None:
        is_sent = self.is_sent = bool(self._background and self._background.drain())
        spool.sync()
        if spool.lost:
            say(f"{spool.lost} records found no room on disk or in memory, and are lost")
        if not is_sent:
            why = f" ({self._background.reason})" if self._background else ""
            say(f"the run is kept in {self.dir}{why}; send it with: grove sync {self.dir}")
        elif not quiet:
            say(f"the run is complete: {self.url}")
        spool.close(sent=is_sent)

    def fail(self, error: BaseException) -> None:
        """Ends the run as failed by an exception, which is shown on its page."""
        shown = "".join(traceback.format_exception(error))
        cause = f"{type(error).__name__}: {error}"
        self._emit("error", {"message": values.text_of(cause, 2000),
                             "traceback": values.text_of(shown, 20_000)})  # fmt: skip
        self.finish(exit_code=1)

    def describe(self, *, tags: Sequence[str] | None = None, notes: str | None = None) -> None:
        """Replaces the run's tags, or its notes."""
        if tags is not None:
            given = [tags] if isinstance(tags, str) else tags
            self._tags = tuple(tags_of(given))
            self._emit("run.described", {"tags": [*self._tags]})
        if notes is not None:
            self._notes = values.text_of(notes, limits.LONGEST_NOTES)
            self._emit("run.described", {"notes": self._notes})

    def begin(self) -> None:
        """Records that the process logs; `init` does."""
        self._emit("run.state", {"state": "running"})

    def plan(self, steps: int) -> None:
        """Says how many steps there will be, of which the page shows the progress."""
        self._emit("run.planned", {"steps": max(0, min(int(steps), LARGEST_STEP)), "agents": []})

    def define_metric(self, name: str, step_metric: Any = None, **others: Any) -> Metric:
        """Gives values of a name, or of all that begin as `name` before its "*", the number that
        `step_metric` names as their step, as far as it is a whole number. Other arguments of W&B's
        change nothing. Returns what was given.

        Raises:
            ValueError: "*" is within the name.
        """
        axis = getattr(step_metric, "name", step_metric)
        self._axes.define(name, None if axis is None else str(axis))
        return Metric(name, step_metric=axis, **others)

    def watch(self, *_: Any, **__: Any) -> None:
        """Does nothing: log the histograms that you need. For programs that call W&B's."""

    unwatch = watch

    def save(self, *_: Any, **__: Any) -> list[str]:
        """Keeps no file, and says so once. For programs that call W&B's."""
        self._warn_once(f"save, log_artifact, log_model and log_code keep nothing: {FILES}")
        return []

    def log_artifact(self, artifact: Any = None, *_: Any, **__: Any) -> Any:
        """Keeps no file, says so once, and returns the artifact. For programs that call W&B's."""
        self.save()
        return artifact

    log_model = link_artifact = link_model = upsert_artifact = finish_artifact = log_artifact
    log_code = save
    use_artifact = refuser("use_artifact", "read the files from where they are")
    use_model = refuser("use_model", "grove pull-model writes a version of a model as a zip")
    restore = refuser("restore", "read the file from where the program wrote it")

    def mark_preempting(self) -> None:
        """Does nothing: a run that was cut off resumes by `init(id=..., resume="allow")`."""

    def write_logs(self, text: str) -> None:
        """Records a message in the run's log."""
        self._emit("log.line", {"level": "info", "message": values.text_of(str(text))})

    def display(self, *_: Any, **__: Any) -> bool:
        """Shows nothing in a notebook; returns False, as W&B's does then."""
        return False

    def pin_config_keys(self, *_: Any, **__: Any) -> None:
        """Does nothing: the page shows all settings."""

    def get_url(self) -> str:
        return self.url

    def to_html(self, height: int = 420, hidden: bool = False) -> str:
        """Returns a link to the run's page, for a notebook."""
        return f'<a href="{html.escape(self.url)}">{html.escape(self.name)}</a>'

    def status(self) -> dict[str, Any]:
        """Returns whether the newest attempt to send failed, and why."""
        reason = self._background.reason if self._background else ""
        return {"sent": not reason, "reason": reason}

    def project_name(self) -> str:
        return self.project

    @property
    def path(self) -> str:
        """Workspace, project and id, as far as the program gave them."""
        return "/".join(one for one in (self.entity, self.project, self.id) if one)

    def _label(self, *_: Any, **__: Any) -> None:
        """Does nothing: transformers gives W&B its name so."""

    def new_tree(self) -> int:
        """Returns the id of a new tree of this process, which no other of the run has."""
        with self._lock:
            self._trees += 1
            start = int(self._spool.header.session[:8], 16) if self._spool else 0
            return (start >> 1) * 2**22 + self._trees  # below 2**53, the browser's integers

    def emit(self, kind: str, payload: Mapping[str, Any], tree: int | None = None,
             node: int | None = None) -> None:  # fmt: skip
        """Records an event of the telemetry (`docs/reference/events.md`), for integrations."""
        self._emit(kind, payload, tree, node)

    def append(self, lines: Sequence[bytes]) -> None:
        """Records events that are encoded already (`records.encoded`), for imports.

        Raises:
            OSError: the spool cannot be written, and none of them is recorded.
        """
        if self._spool is not None:
            self._spool.append_to_file(*lines)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if error is None:
            self.finish()
        else:
            self.fail(error)

    def _write(self, fields: values.Fields, step: int) -> None:
        fields = self._names.admitted(fields)
        if self._names.left_out:
            self._warn_once(room.LEFT_OUT)
        if not fields:
            return
        line = encoded_now("metric.logged", {"step": step, **fields})
        if values.fits(fields, len(line)):
            self._append(line)
            return
        for part in values.parts(fields):
            self._append(encoded_now("metric.logged", {"step": step, **part}))

    def _describe(self, field: str, added: Mapping[str, Any]) -> None:
        plain = values.plain(added)
        if len(encode(plain)) > limits.MOST_CONFIG_BYTES // 4:
            plain = {key: values.text_of(str(one), limits.LONGEST_CELL) for key, one in
                     list(plain.items())[:50]}  # fmt: skip
            self._warn_once(f"{field}: it is too large, and kept in part, as texts")
        given, plain = len(plain), self._room[field].admitted(plain)
        if len(plain) < given:
            self._warn_once(f"{field}: {limits.MOST_CONFIG_BYTES} bytes are kept, and no more")
        if not plain:
            return
        self._emit("run.described", {field: plain})

    def _emit(self, kind: str, payload: Mapping[str, Any], tree: int | None = None,
              node: int | None = None) -> None:  # fmt: skip
        self._append(encoded_now(kind, payload, tree, node))

    def _append(self, *lines: bytes) -> None:
        if self._spool is None or self._is_foreign():
            return
        if self.is_over:
            self._warn_once(f"the run {self.id} is over, and what is logged to it now is left out: "
                            "call init again to log to a new one, or to resume it")  # fmt: skip
            return
        self._spool.append(*lines)
        if self._spool.problem:
            self._warn_once(
                f"the spool cannot be written ({self._spool.problem}): records wait in memory"
            )

    def _given_step(self, step: Any) -> int | None:
        """Returns the step that a call names; None if it names none, or what is no step."""
        if step is None or (type(step) is int and 0 <= step <= LARGEST_STEP):
            return step
        number = whole(step)
        if number is None:
            self._warn_once(
                f"log: step = {values.written(step, repr)[:80]} is no step, and counts as none: "
                f"give a whole number of 0 to {LARGEST_STEP}"
            )
        return number

    def _is_foreign(self) -> bool:
        if self.is_of_this_process:
            return False
        self._warn_once("a forked process logs nothing: call init in it to log a run of its own")
        return True

    def _warn_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            say(text)
