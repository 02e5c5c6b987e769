"""States that events report, with the labels and colours by which every page shows them."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """State of a run; `engine` reports running, finished, failed and stopped.

    Every page shows `label` and `colour`; a colour is the name of a palette entry.
    """

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def label(self) -> str:
        return self.value.capitalize()

    @property
    def colour(self) -> str:
        return _STATE_COLOURS[self]


_STATE_COLOURS = {
    RunState.QUEUED: "grey",
    RunState.STARTING: "violet",
    RunState.RUNNING: "blue",
    RunState.STOPPING: "amber",
    RunState.STOPPED: "amber",
    RunState.FINISHED: "green",
    RunState.FAILED: "red",
}


class Verdict(StrEnum):
    """Outcome of a program's execution on one test, or on all of them."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    RUNTIME_ERROR = "runtime_error"
    SYNTAX_ERROR = "syntax_error"
    NO_PROGRAM = "no_program"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    KILLED = "killed"
    SANDBOX_FAILURE = "sandbox_failure"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ").capitalize()

    @property
    def colour(self) -> str:
        return _VERDICT_COLOURS[self]


_VERDICT_COLOURS = {
    Verdict.PASSED: "green",
    Verdict.WRONG_ANSWER: "red",
    Verdict.RUNTIME_ERROR: "orange",
    Verdict.SYNTAX_ERROR: "orange",
    Verdict.NO_PROGRAM: "grey",
    Verdict.TIME_LIMIT: "violet",
    Verdict.MEMORY_LIMIT: "violet",
    Verdict.OUTPUT_LIMIT: "violet",
    Verdict.KILLED: "violet",
    Verdict.SANDBOX_FAILURE: "amber",
}


class StopReason(StrEnum):
    """Reason why a generation ended."""

    END_OF_TEXT = "end_of_text"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LIMIT = "context_limit"
