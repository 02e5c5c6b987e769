"""What the holder of a link sees of a run: the one list, for stream, REST, series and pages.

Invariant: a guest sees what is listed here and nothing else. Not listed are the load of the server,
its disks and network, and texts that may name its paths, hosts and processes: samples and lines of
the log, causes of failures, directories of checkpoints, settings that name places. An event that is
not shown leaves a gap in the seqs; frames of the stream say up to which seq they reach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from engine.events.states import Verdict
from webapp.telemetry.ingest.rows import Row

EVENT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "run.state": ("state",),
    "run.resumed": ("step",),
    "run.waiting": ("name", "deadline_seconds", "done", "total"),
    "run.planned": ("steps", "agents", "minutes"),
    "step.start": ("step", "trees"),
    "step.end": (
        *("step", "seconds", "phases", "nodes", "reward", "solved", "node_share"),
        *("reward_by_agent", "filtered_trees", "dropped_nodes", "tokens", "training_seconds"),
        *("refilled_trees", "carried_trees", "trees", "left", "rows"),
    ),
    "tree.open": ("step", "problem", "statement", "difficulty", "tags"),
    "node.open": ("agent", "parent", "depth", "draws"),
    "node.text": ("prompt", "tokens", "logprobs"),
    "node.close": (
        *("program", "verdict", "score", "fraction", "tests", "tokens", "stop", "mean_logprob"),
        *("policy_version", "seconds", "error", "no_program", "pieces"),
    ),
    "node.credit": ("shaped", "advantage", "parts", "gates"),
    "tree.close": ("nodes", "solved", "mean_score", "filtered"),
    "agent.update": (
        *("agent", "step", "version", "nodes", "loss", "policy_loss", "kl", "clip_fraction"),
        *("entropy", "gradient_norm", "learning_rate", "lag", "mismatch", "stale_nodes"),
        *("shared_with", "layout", "row_tokens", "forwarded_tokens", "trees", "figures"),
    ),
    "tree.learned": ("agent", "step", "version", "nodes"),
    "eval.result": (
        *("step", "split", "agents", "standard_errors", "problems", "tree", "samples"),
        *("tree_nodes", "rollouts", "tokens", "seconds", "families", "no_program"),
    ),
    "eval.outcomes": ("step", "split", "contents", "outcomes"),
    "checkpoint.saved": ("step", "final", "validation", "best"),
    "health": (
        *("rule", "state", "step", "title", "seen", "since", "since_time", "agent", "advice"),
        *("figures",),
    ),
    "search.answer": (
        *("program", "agent", "rule", "passed", "tests", "private_passed", "ended", "nodes"),
        *("tokens", "seconds", "reward"),
    ),
    # Texts, tables and images of another program may name paths, hosts and people.
    "metric.logged": ("step", "numbers", "nonfinite", "histograms"),
    "error": ("phase", "agent"),
}
"""Fields that are shown of each kind of event; events of other kinds are not shown at all."""

FAILURE = "Members of its workspace see the cause."
"""Replaces the cause of a failure."""
WAIT = "the server"
"""Replaces the name of a wait that is not in `WAITS`."""
WAITS = frozenset({
    "", "agents to learn", "agents to load", "agents to start", "agents to write", "sandbox",
    "sandbox and agents to start", "starting Ray", "validation",
    "final test, starting weights", "final test, trained weights",
})  # fmt: skip
"""Names of waits that are shown as they are."""
_STATUS = ("state", "stop_requested", "step", "steps", "restarts", "queued_at", "started_at",
           "finished_at", "result")  # fmt: skip

_SERIES = frozenset({
    "reward", "solved", "phase", "share", "validation", "test", "search", "best", "within", "ends",
    "stops", "no_program", "hacking", "cost", "logged", *EVENT_FIELDS["agent.update"],
}) - {"step"}  # fmt: skip
"""First words of the names of series (`webapp.scalars`), but for `step.FIELD`."""
_STEP_SERIES = frozenset({"filtered_share", *EVENT_FIELDS["step.end"]})

_SETTINGS = re.compile(
    r"seed|recipe|(search|credit|loss|training|evaluation)\..+"
    r"|agents\.[^.]+\.(name|role|trainable|shares_weights_with|(lora|sampling|optimizer)(\..+)?)"
)


def row(stored: Row) -> Row | None:
    """Returns the part of a stored event that is shown; None if nothing is."""
    seq, milliseconds, kind, tree, node, text = stored
    # Values stay the database's own text: decoding them all would cost more than sending them.
    shown = payload(kind, msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    if shown is None:
        return None
    return seq, milliseconds, kind, tree, node, msgspec.json.encode(shown).decode()


def payload(kind: str, stored: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the fields of a payload that are shown, decoded or not; None if the event is not."""
    fields = EVENT_FIELDS.get(kind)
    if fields is None:
        return None
    shown = {name: stored[name] for name in fields if name in stored}
    return _RETOLD[kind](shown) if kind in _RETOLD else shown


def status(full: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of `experiments.presentation.status` that is shown."""
    waiting = full["waiting"]
    return {
        **{name: full[name] for name in _STATUS},
        "waiting": waiting and {**waiting, "name": _wait(waiting["name"])},
        "error": full["error"] and FAILURE,
    }


def shows_series(name: str) -> bool:
    """Returns whether the series of this name is shown."""
    first, _, rest = name.partition(".")
    return rest in _STEP_SERIES if first == "step" else first in _SERIES


def shows_setting(path: str) -> bool:
    """Returns whether the value of a setting is shown: not those that name a place on the server or
    in its organisation, or what its machines are."""
    return _SETTINGS.fullmatch(path) is not None


def _wait(name: str) -> str:
    return name if name in WAITS else WAIT


def _waiting(shown: dict[str, Any]) -> dict[str, Any]:
    return {**shown, "name": _wait(_plain(shown.get("name", "")))}


def _closed_node(shown: dict[str, Any]) -> dict[str, Any]:
    """The sandbox's own failure is described by what the host lacks; a program's is its output."""
    if _plain(shown.get("verdict")) != Verdict.SANDBOX_FAILURE:
        return shown
    tests = [{**test, "error": ""} for test in _plain(shown.get("tests", []))]
    return {**shown, "tests": tests, "error": ""}


def _failure(shown: dict[str, Any]) -> dict[str, Any]:
    return {**shown, "message": FAILURE}


_RETOLD: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "run.waiting": _waiting,
    "node.close": _closed_node,
    "error": _failure,
}


def _plain(value: Any) -> Any:
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else value
