"""Deadlines of the product that a busy machine can overrun, in seconds; settings of the operator.

A deadline is its own variable if that is set, else its default times GROVE_PATIENCE. It is read
from the environment when it is used, so each process has what its environment says. Poll intervals,
rates, retention and the limits of programs are not here: patience must not change a result.

Invariant: `seconds` is a usable number. For any other value it raises `ConfigError` with variable,
value and remedy, as does `check` before anything starts.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.config.errors import ConfigError

PATIENCE = "GROVE_PATIENCE"
MAX_PATIENCE = 100
MAX_SECONDS = 604_800
"""A week."""
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_Environment = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Deadline:
    """One deadline: its variable, its default in seconds, and what is waited for."""

    variable: str
    default: float
    wait: str

    @property
    def seconds(self) -> float:
        """The seconds that this process's environment says.

        Raises:
            ConfigError: the variable, or GROVE_PATIENCE, is unusable.
        """
        if given := os.environ.get(self.variable):
            return _read(self.variable, given)
        return self.default * patience()

    @property
    def whole_seconds(self) -> int:
        """`seconds`, rounded up, for libraries that take whole seconds."""
        return math.ceil(self.seconds)

    @property
    def remedy(self) -> str:
        """The end of the error where this deadline has passed."""
        return f"on a busy machine raise {self.variable} or {PATIENCE}"

    @property
    def passed(self) -> str:
        """The error where this deadline has passed."""
        return f"waited {self.seconds:g} s for {self.wait}; {self.remedy}"

    @property
    def advice(self) -> str:
        """`remedy` as a sentence."""
        return f"O{self.remedy[1:]}."


# Workers and their engines.
ENGINE_START = Deadline("GROVE_ENGINE_START_SECONDS", 10.0, "the engine to start")
ENGINE_STOP = Deadline("GROVE_ENGINE_STOP_SECONDS", 60.0, "the engine's last checkpoint")
KILL = Deadline("GROVE_KILL_SECONDS", 10.0, "a killed process to end")
ENGINE_LEASE = Deadline("GROVE_ENGINE_LEASE_SECONDS", 60.0, "a worker to touch the engine's lease")
RUN_LEASE = Deadline("GROVE_RUN_LEASE_SECONDS", 15.0, "a worker to renew its lease of a run")
JOB_LEASE = Deadline(
    "GROVE_JOB_LEASE_SECONDS", 30.0, "a worker to renew its lease of a check or an import"
)
PROBLEM_CHECK = Deadline("GROVE_PROBLEM_CHECK_SECONDS", 20.0, "the check of a problem")
EXPORT = Deadline("GROVE_EXPORT_SECONDS", 900.0, "an export to be written")

# The engine, its actors and its sandbox.
RAY_START = Deadline("GROVE_RAY_START_SECONDS", 300.0, "Ray to start")
RAY_STOP = Deadline("GROVE_RAY_STOP_SECONDS", 5.0, "Ray's processes to end")
PRELOAD_ANSWER = Deadline("GROVE_PRELOAD_ANSWER_SECONDS", 10.0, "a launcher to answer")
ACTORS_START = Deadline("GROVE_ACTORS_START_SECONDS", 300.0, "models and sandboxes to start")
VLLM_START = Deadline("GROVE_VLLM_START_SECONDS", 900.0, "vLLM to start")
VLLM_ANSWER = Deadline("GROVE_VLLM_ANSWER_SECONDS", 1800.0, "vLLM to answer")
VLLM_CONTROL = Deadline(
    "GROVE_VLLM_CONTROL_SECONDS", 600.0, "vLLM to take new weights, or to sleep"
)
CALL = Deadline("GROVE_CALL_SECONDS", 3600.0, "one call of an actor")
RANKS_GRACE = Deadline("GROVE_RANKS_GRACE_SECONDS", 5.0, "the errors of the other ranks")
SANDBOX_START = Deadline("GROVE_SANDBOX_START_SECONDS", 60.0, "the sandbox process to start")
SANDBOX_GRACE = Deadline(
    "GROVE_SANDBOX_GRACE_SECONDS", 10.0, "the sandbox process to reply after a program's wall limit"
)
SANDBOX_NICENESS = Deadline(
    "GROVE_SANDBOX_NICENESS_SECONDS", 2.0, "the kernel to take the sandbox process's niceness"
)
ENDPOINT_CONNECT = Deadline("GROVE_ENDPOINT_CONNECT_SECONDS", 10.0, "an endpoint to connect")
ENDPOINT_CLOSE = Deadline(
    "GROVE_ENDPOINT_CLOSE_SECONDS", 10.0, "the requests to an endpoint to be cancelled"
)
REGISTRY = Deadline(
    "GROVE_REGISTRY_SECONDS", 60.0, "the server of a registry: model to send a byte"
)
TEMPLATE_END = Deadline("GROVE_TEMPLATE_END_SECONDS", 10.0, "the process of a template to end")

# The site.
DATABASE_CONNECTION = Deadline(
    "GROVE_DATABASE_CONNECTION_SECONDS", 10.0, "a free connection to the database"
)
STREAM_SEND = Deadline("GROVE_STREAM_SEND_SECONDS", 20.0, "a client to accept one frame")
READY = Deadline("GROVE_READY_SECONDS", 4.0, "a check of readiness to answer")
METRICS_READER = Deadline(
    "GROVE_METRICS_READER_SECONDS", 10.0, "a reader of a worker's metrics to send its request"
)
WEB_CLOSE = Deadline("GROVE_WEB_CLOSE_SECONDS", 3.0, "responses in flight when the site ends")
DATASET_READ = Deadline("GROVE_DATASET_READ_SECONDS", 90.0, "a dataset to be read")
MODEL_CHECK = Deadline("GROVE_MODEL_CHECK_SECONDS", 60.0, "a model's files to be checked")
WEBHOOK = Deadline("GROVE_WEBHOOK_SECONDS", 10.0, "the receiver of a webhook to answer")

# The services of one machine, and its checks.
WEB_START = Deadline("GROVE_WEB_START_SECONDS", 60.0, "the web service to answer")
POSTGRES_START = Deadline("GROVE_POSTGRES_START_SECONDS", 120.0, "Postgres to start")
POSTGRES_STOP = Deadline("GROVE_POSTGRES_STOP_SECONDS", 20.0, "Postgres to shut down")
DEMO_SIGN_IN = Deadline("GROVE_DEMO_SIGN_IN_SECONDS", 120.0, "the demo to sign in")
DEMO_EVENTS = Deadline("GROVE_DEMO_EVENTS_SECONDS", 20.0, "the last events of the demo's run")
BACKUP = Deadline(
    "GROVE_BACKUP_SECONDS", 86_400.0, "pg_dump or pg_restore to write the whole database"
)
REMOVALS_HOLD = Deadline(
    "GROVE_REMOVALS_HOLD_SECONDS", 60.0, "another backup, or removals of artifacts, to end"
)
PROGRAM_ANSWER = Deadline(
    "GROVE_PROGRAM_ANSWER_SECONDS", 20.0, "nvidia-smi or postgres --version to answer"
)
NETWORK_ANSWER = Deadline(
    "GROVE_NETWORK_ANSWER_SECONDS", 5.0, "a database, a broker or a page to answer the doctor"
)
VLLM_IMPORT = Deadline("GROVE_VLLM_IMPORT_SECONDS", 120.0, "vLLM to be imported by the doctor")

DEADLINES = {one.variable: one for one in list(globals().values()) if isinstance(one, Deadline)}
"""All of them, by variable."""
VARIABLES = frozenset({PATIENCE, *DEADLINES})


def patience() -> float:
    """Returns GROVE_PATIENCE, the factor of all deadlines that are not set themselves; 1 if unset.

    Raises:
        ConfigError: it is no number from 1 to `MAX_PATIENCE`.
    """
    given = os.environ.get(PATIENCE)
    return _read(PATIENCE, given) if given else 1.0


def given(environment: _Environment = os.environ) -> dict[str, str]:
    """Returns the variables of this module that are set, for processes that inherit nothing."""
    return {name: environment[name] for name in sorted(VARIABLES) if environment.get(name)}


def check(environment: _Environment = os.environ) -> None:
    """Raises `ConfigError` for the variables with an unusable value, if there are any."""
    found = given(environment).items()
    if errors := [error for name, text in found if (error := _error(name, text))]:
        raise ConfigError(errors)


def _read(name: str, text: str) -> float:
    if error := _error(name, text):
        raise ConfigError([error])
    return float(text)


def _error(name: str, text: str) -> dict[str, Any] | None:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if name == PATIENCE and not 1 <= number <= MAX_PATIENCE:
        reason = f"give a number from 1 to {MAX_PATIENCE}, or unset it"
    elif name != PATIENCE and not 0 < number <= MAX_SECONDS:
        reason = f"give seconds, more than 0 and at most {MAX_SECONDS}, or unset it"
    else:
        return None
    return {"path": name, "value": text, "reason": reason}
