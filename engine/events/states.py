"""States that events report, with the labels and colours by which every page shows them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class ShownState(StrEnum):
    """State that every page shows by its `label` and `colour`, the name of a palette entry."""

    _value_: str
    colour: str

    def __new__(cls, value: str, colour: str) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.colour = value, colour
        return member

    @property
    def label(self) -> str:
        return self.value.replace("_", " ").capitalize()


class RunState(ShownState):
    """State of a run; `engine` reports running, finished, failed and stopped."""

    QUEUED = "queued", "grey"
    STARTING = "starting", "violet"
    RUNNING = "running", "blue"
    STOPPING = "stopping", "amber"
    STOPPED = "stopped", "amber"
    FINISHED = "finished", "green"
    FAILED = "failed", "red"


class Verdict(ShownState):
    """Outcome of a program's execution on one test, or on all of them; or of a turn."""

    PASSED = "passed", "green"
    WRONG_ANSWER = "wrong_answer", "red"
    RUNTIME_ERROR = "runtime_error", "orange"
    SYNTAX_ERROR = "syntax_error", "orange"
    NO_PROGRAM = "no_program", "grey"
    TIME_LIMIT = "time_limit", "violet"
    MEMORY_LIMIT = "memory_limit", "violet"
    OUTPUT_LIMIT = "output_limit", "violet"
    KILLED = "killed", "violet"
    SANDBOX_FAILURE = "sandbox_failure", "amber"
    PLAYED = "played", "blue"
    """A turn after which its episode went on."""
    TRUNCATED = "truncated", "violet"
    """The last turn of an episode that a limit of turns ended."""


class StopReason(StrEnum):
    """Reason why a generation ended."""

    END_OF_TEXT = "end_of_text"
    MAX_TOKENS = "max_tokens"
    CONTEXT_LIMIT = "context_limit"


class NoProgram(StrEnum):
    """Reason why an answer holds no program for its problem."""

    NO_CODE = "no_code"
    """Nothing is fenced, and nothing else is code."""
    DOES_NOT_PARSE = "does_not_parse"
    NO_ENTRY_POINT = "no_entry_point"
    """Its code parses and does not define the entry point; where there is none, prints nothing."""
    CUT_AT_LIMIT = "cut_at_limit"
    """The answer was cut at the limit of tokens or of the context before its program ended."""
    NO_ANSWER = "no_answer"
    """An endpoint refused the request, or its response held no answer."""

    @property
    def of_endpoints(self) -> bool:
        """Whether no model of Grove's own has it: figures leave it out where it does not occur."""
        return self is NoProgram.NO_ANSWER


class HealthState(StrEnum):
    """State of a health warning of a run (`engine.health`)."""

    OPENED = "opened"
    CLOSED = "closed"


HEALTH_RULES = (
    "entropy_collapse", "entropy_runaway", "equal_groups", "nothing_clipped", "everything_clipped",
    "mismatch", "gradient_spike", "held_out_falls", "unshaped", "repeated_answers", "answer_loops",
    "truncated_answers", "no_programs", "slow_step", "idle_agent",
)  # fmt: skip
"""Names of the rules of `engine.health`."""
