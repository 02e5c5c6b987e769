"""Decision to restart a crashed engine, from the events that it reported.

Invariant: an error that the engine itself reports twice in a row without progress is permanent; any
other crash is followed by a restart, at most `MAX_RESTARTS` times without a new checkpoint between
them.
"""

from __future__ import annotations

from engine.events import vocabulary as ev

MAX_RESTARTS = 3
"""Consecutive crashes, without a new checkpoint between them, that a run survives."""
RESTART_PAUSE_SECONDS = 1.0
"""Pause before the first restart; doubled for each further one."""


class RestartPolicy:
    """Crashes of one run, and what its current engine has reported."""

    def __init__(self, pause_seconds: float = RESTART_PAUSE_SECONDS):
        self.reported_error = ""
        """First error that the current engine reported."""
        self._pause_seconds = pause_seconds
        self._crashes = 0
        self._newest_checkpoint = -1
        self._progressed = False
        self._last_cause = ""

    def engine_started(self) -> None:
        """Discards what the previous engine reported."""
        self._progressed, self.reported_error = False, ""

    def observe(self, event: ev.Event) -> None:
        """Records a checkpoint or an error of the current engine."""
        if event.kind == "checkpoint.saved" and event.payload["step"] > self._newest_checkpoint:
            self._newest_checkpoint = event.payload["step"]
            self._progressed = True
        elif event.kind == "error" and not self.reported_error:
            self.reported_error = event.payload["message"]

    def allows_restart(self, cause: str) -> bool:
        """Records a crash; returns whether the engine is to be started again."""
        self._crashes = 1 if self._progressed else self._crashes + 1
        permanent = not self._progressed and self.reported_error and cause == self._last_cause
        self._last_cause = cause
        return not permanent and self._crashes <= MAX_RESTARTS

    def pause(self) -> float:
        """Returns the seconds to wait before the next start."""
        return self._pause_seconds * 2 ** (self._crashes - 1)
