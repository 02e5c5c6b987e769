"""Fold of a log into a state, state(seq), the same as the run page computes in the browser.

Invariants (those of static/js/stream/fold.js, which a test holds against this module on the same
logs):
- Applying an event whose seq is not above the state's changes nothing.
- `run.resumed {step}` discards what was recorded of later steps.
- Only the trees of the two newest steps are kept, and of values that a program logged the newest of
  each of `KEPT_NAMES` names.
- A node's parent is the root (0) or a node that was opened before it, whatever the log says. A node
  that is opened again, or as the root, is ignored.

An event is [seq, t_ms, kind, payload] as on the wire; `tree` and `node` are in the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

KEPT_LOG_LINES = 200
KEPT_SYSTEM_SAMPLES = 600
LOGGED_KINDS = ("texts", "tables", "histograms", "images", "nonfinite")
KEPT_NAMES = 100
"""Names of each of these kinds whose newest value is kept: the last ones that were logged."""

Payload = dict[str, Any]
WireEvent = Sequence[Any]


@dataclass
class State:
    """Folded state, with the browser's field names; times are milliseconds."""

    seq: int = 0
    time: int = 0
    startedAt: int = 0
    run: Payload = field(default_factory=lambda: {"state": "queued", "reason": "", "since": 0})
    plan: Payload = field(default_factory=lambda: {"steps": 0, "agents": [], "minutes": None})
    step: int = 0
    stepStartedAt: int = 0
    steps: list[Payload] = field(default_factory=list)
    updates: list[Payload] = field(default_factory=list)
    evaluations: list[Payload] = field(default_factory=list)
    checkpoints: list[Payload] = field(default_factory=list)
    health: list[Payload] = field(default_factory=list)
    answer: Payload | None = None
    trees: dict[int, Payload] = field(default_factory=dict)
    waiting: Payload | None = None
    error: Payload | None = None
    logs: list[Payload] = field(default_factory=list)
    system: list[Payload] = field(default_factory=list)
    resumes: int = 0
    logged: Payload = field(
        default_factory=lambda: {"step": 0, "seq": 0, **{kind: {} for kind in LOGGED_KINDS}}
    )

    def as_json(self) -> Payload:
        """Returns plain values; trees and nodes as lists in the order in which they were opened."""
        trees = [{**tree, "nodes": list(tree["nodes"].values())} for tree in self.trees.values()]
        return {**self.__dict__, "trees": trees}

    def touched(self, payload: Payload, seq: int) -> Payload | None:
        """Returns the tree of an event and records `seq` on it; None if the tree is not kept."""
        if tree := self.trees.get(payload["tree"]):
            tree["seq"] = seq
        return tree

    def touched_node(self, payload: Payload, seq: int) -> Payload | None:
        tree = self.touched(payload, seq)
        return tree["nodes"].get(payload["node"]) if tree else None


def fold(events: Iterable[WireEvent], state: State | None = None) -> State:
    """Folds events into a state, which is changed and returned."""
    state = state or State()
    for event in events:
        apply(state, event)
    return state


def apply(state: State, event: WireEvent) -> bool:
    """Applies one event; false when the state already holds it."""
    seq, time, kind, payload = event
    if seq <= state.seq:
        return False
    state.seq, state.time = seq, time
    state.startedAt = state.startedAt or time
    if handler := _HANDLERS.get(kind):
        handler(state, payload, time, seq)
    return True


def _run_state(state: State, payload: Payload, time: int, seq: int) -> None:
    state.run = {"state": payload["state"], "reason": payload.get("reason", ""), "since": time}
    if payload["state"] in ("queued", "starting", "running"):
        state.error = None
    if payload["state"] in ("finished", "failed", "stopped"):
        state.waiting = None


def _run_resumed(state: State, payload: Payload, time: int, seq: int) -> None:
    def survives(item: Payload) -> bool:
        return item["step"] <= payload["step"]

    state.resumes += 1
    state.step = min(state.step, payload["step"])
    for name in ("steps", "updates", "evaluations", "checkpoints", "health"):
        setattr(state, name, [item for item in getattr(state, name) if survives(item)])
    for warning in state.health:  # one that closed in a voided step is open again
        if warning["closed"] and not survives(warning["closed"]):
            warning["closed"] = None
    state.trees = {id_: tree for id_, tree in state.trees.items() if survives(tree)}
    for kind in LOGGED_KINDS:
        newest = state.logged[kind]
        state.logged[kind] = {name: one for name, one in newest.items() if survives(one)}
    state.waiting = state.answer = None


def _run_waiting(state: State, payload: Payload, time: int, seq: int) -> None:
    before, state.waiting = state.waiting, None
    if payload["name"]:
        state.waiting = {
            "name": payload["name"],
            "deadline": payload["deadline_seconds"],
            "since": before["since"] if before and before["name"] == payload["name"] else time,
            "done": payload.get("done", 0),
            "total": payload.get("total", 0),
        }


def _run_planned(state: State, payload: Payload, time: int, seq: int) -> None:
    minutes = payload.get("minutes")
    state.plan = {"steps": payload["steps"], "agents": payload["agents"], "minutes": minutes}


def _step_start(state: State, payload: Payload, time: int, seq: int) -> None:
    state.step, state.stepStartedAt = payload["step"], time
    oldest = state.step - 1
    state.trees = {id_: tree for id_, tree in state.trees.items() if tree["step"] >= oldest}


def _step_end(state: State, payload: Payload, time: int, seq: int) -> None:
    """Records a step's end; a repeated step replaces its earlier record."""
    item = {**payload, "time": time, "seq": seq}
    at = next(
        (index for index, other in enumerate(state.steps) if other["step"] >= item["step"]),
        len(state.steps),
    )
    again = at < len(state.steps) and state.steps[at]["step"] == item["step"]
    state.steps[at : at + again] = [item]


def _tree_open(state: State, payload: Payload, time: int, seq: int) -> None:
    state.trees[payload["tree"]] = {
        "id": payload["tree"],
        "step": payload["step"],
        "problem": payload["problem"],
        "statement": payload["statement"],
        "difficulty": payload.get("difficulty", 0),
        "nodes": {},
        "closed": False,
        "solved": False,
        "meanScore": None,
        "filtered": False,
        "seq": seq,
    }


def _node_open(state: State, payload: Payload, time: int, seq: int) -> None:
    tree = state.touched(payload, seq)
    if tree and payload["node"] != 0 and payload["node"] not in tree["nodes"]:
        tree["nodes"][payload["node"]] = {
            "id": payload["node"],
            "tree": payload["tree"],
            "agent": payload["agent"],
            "parent": payload["parent"] if payload["parent"] in tree["nodes"] else 0,
            "depth": payload["depth"],
            "draws": payload["draws"],
            "openedAt": time,
            "openedSeq": seq,
            "closed": False,
            "score": None,
            "shaped": None,
            "advantage": None,
        }


def _node_close(state: State, payload: Payload, time: int, seq: int) -> None:
    if (node := state.touched_node(payload, seq)) is None:
        return
    node |= {"closed": True, "closedAt": time, "closedSeq": seq}
    node |= {name: payload[key] for name, key in _OF_CLOSE.items() if key in payload}
    node |= {"error": payload.get("error", ""), "noProgram": payload.get("no_program", "")}
    node["pieces"] = payload.get("pieces", [])
    if node["score"] == 1:
        state.trees[payload["tree"]]["solved"] = True


_OF_CLOSE = {
    "program": "program",
    "verdict": "verdict",
    "score": "score",
    "fraction": "fraction",
    "tests": "tests",
    "tokens": "tokens",
    "stop": "stop",
    "meanLogprob": "mean_logprob",
    "policyVersion": "policy_version",
    "seconds": "seconds",
}


def _node_credit(state: State, payload: Payload, time: int, seq: int) -> None:
    if node := state.touched_node(payload, seq):
        node |= {"shaped": payload["shaped"], "advantage": payload["advantage"]}
        node |= {name: payload[name] for name in ("parts", "gates") if name in payload}


def _tree_close(state: State, payload: Payload, time: int, seq: int) -> None:
    if tree := state.touched(payload, seq):
        tree["closed"] = True
        for name, key in (("solved",) * 2, ("meanScore", "mean_score"), ("filtered",) * 2):
            if key in payload:
                tree[name] = payload[key]


def _appended(name: str, limit: int | None = None) -> Callable[[State, Payload, int, int], None]:
    def append(state: State, payload: Payload, time: int, seq: int) -> None:
        items = getattr(state, name)
        items.append({**payload, "time": time, "seq": seq})
        if limit is not None and len(items) > limit:
            del items[0]

    return append


def _health(state: State, payload: Payload, time: int, seq: int) -> None:
    if payload["state"] == "opened":
        state.health.append({**payload, "time": time, "seq": seq, "closed": None})
        return
    key = payload["rule"], payload.get("agent", "")
    for warning in state.health:
        if (warning["rule"], warning.get("agent", "")) == key and not warning["closed"]:
            closed = {name: payload[name] for name in ("step", "seen")}
            warning["closed"] = {**closed, "time": time, "seq": seq}
            return


def _logged(state: State, payload: Payload, time: int, seq: int) -> None:
    state.logged["step"], state.logged["seq"] = max(state.logged["step"], payload["step"]), seq
    for kind in LOGGED_KINDS:
        newest = state.logged[kind]
        for name, value in payload.get(kind, {}).items():
            newest.pop(name, None)  # the last ones that were logged come last
            newest[name] = {"value": value, "step": payload["step"], "time": time, "seq": seq}
        for name in list(newest)[:-KEPT_NAMES]:
            del newest[name]


def _search_answer(state: State, payload: Payload, time: int, seq: int) -> None:
    state.answer = {**payload, "time": time, "seq": seq}


def _error(state: State, payload: Payload, time: int, seq: int) -> None:
    state.error = state.error or {**payload, "time": time, "seq": seq}


_HANDLERS: dict[str, Callable[[State, Payload, int, int], None]] = {
    "run.state": _run_state,
    "run.resumed": _run_resumed,
    "run.waiting": _run_waiting,
    "run.planned": _run_planned,
    "step.start": _step_start,
    "step.end": _step_end,
    "tree.open": _tree_open,
    "node.open": _node_open,
    "node.close": _node_close,
    "node.credit": _node_credit,
    "tree.close": _tree_close,
    "agent.update": _appended("updates"),
    "eval.result": _appended("evaluations"),
    "checkpoint.saved": _appended("checkpoints"),
    "health": _health,
    "search.answer": _search_answer,
    "system.sample": _appended("system", KEPT_SYSTEM_SAMPLES),
    "log.line": _appended("logs", KEPT_LOG_LINES),
    "metric.logged": _logged,
    "error": _error,
}
