"""Rollouts of any trainer, one JSON object each, as the trees of a run. Pure.

Fields of a rollout; an unknown one is refused, so that no misspelt one is lost:

- `problem` (text, required): rollouts of one step with the same problem are one tree.
- `text` (text, required): the answer.
- `reward` (number or null, required): null if it could not be computed; 1 or more is solved.
- `parent` (default null): `id` of an earlier rollout of the same tree, or null, the problem.
- `id` (text or whole number; default: the number of the line, from 1): what `parent` refers to.
- `agent` (text, default "policy"), `tokens` (whole number, default 0), `step` (default 1).
- `advantage` (number), `cut` (true if the answer ended at its limit).
- `group` (text): distinguishes several trees of a step with the same problem.

Invariants: everything is checked before anything is returned, and the first broken rollout is named
by its place, field and value. Equal rollouts give equal events, except for their time.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from webapp.client.imports.traces import NoTrace, rollouts_in
from webapp.client.tracking import limits
from webapp.client.tracking.trees import AGENT, Node, Tree, record_step
from webapp.client.tracking.values import is_shown, text_of

MOST_NODES = 10_000
"""Nodes of one tree, as many as the page can draw."""
DEEPEST = 500
MOST_AGENTS = 200
LARGEST = 2**31 - 1
LARGEST_REWARD = 1e300
LONGEST_AGENT = 100
_CONSTANTS = (b"NaN", b"Infinity")
Key = str | int


class Broken(ValueError):
    """Raised for the first rollout that cannot be used."""

    def __init__(self, place: str, name: str, value: Any, reason: str):
        self.place, self.name, self.value, self.reason = place, name, value, reason
        shown = "" if name == "" else f"{name} = {_shown(value)}: "
        super().__init__(f"{place}: {shown}{reason}")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # a number of thousands of digits
        text = "a number of many digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass
class _Growing:
    """A tree whose rollouts are being read."""

    problem: str
    nodes: list[Node] = field(default_factory=list)
    numbers: dict[Key, int] = field(default_factory=dict)
    """Number of the node by the rollout's id."""
    depths: list[int] = field(default_factory=lambda: [0])

    def add(self, place: str, row: Mapping[str, Any], key: Key) -> None:
        if key in self.numbers:
            raise Broken(place, "id", key, "the tree has a rollout of this id: give each its own")
        if len(self.nodes) == MOST_NODES:
            reason = f"a tree has {MOST_NODES} rollouts at most: name parts of it by `group`"
            raise Broken(place, "problem", self.problem, reason)
        parent = self._parent(place, row.get("parent"))
        depth = self.depths[parent] + 1
        if depth > DEEPEST:
            reason = f"the tree would be {depth} deep: {DEEPEST} at most"
            raise Broken(place, "parent", row["parent"], reason)
        self.nodes.append(_node(place, row, parent))
        self.depths.append(depth)
        self.numbers[key] = len(self.nodes)

    def _parent(self, place: str, parent: Any) -> int:
        if parent is None:
            return 0
        key = _key(place, "parent", parent)
        if key not in self.numbers:
            reason = (
                "no earlier rollout of this tree has this id: give one of the same step, problem "
                "and group that comes before, or null for the problem"
            )
            raise Broken(place, "parent", parent, reason)
        return self.numbers[key]


def trees_of(rows: Iterable[tuple[str, Mapping[str, Any], int]]) -> dict[int, list[Tree]]:
    """Returns the trees by step, ascending, of rollouts: (place, fields, number of the line).

    Raises:
        Broken: one of them cannot be used, or there is none.
    """
    grown: dict[tuple[int, str, str], _Growing] = {}
    agents: set[str] = set()
    for place, row, line in rows:
        _refuse_unknown(place, row)
        problem = _text(place, row, "problem")
        step = _whole(place, row, "step", 1)
        group = _text(place, row, "group", "")
        tree = grown.setdefault((step, problem, group), _Growing(problem))
        key = row.get("id")
        tree.add(place, row, line if key is None else _key(place, "id", key))
        agents.add(tree.nodes[-1].agent)
        if len(agents) > MOST_AGENTS:
            reason = f"a run has {MOST_AGENTS} agents at most: name the policy, not the rollout"
            raise Broken(place, "agent", tree.nodes[-1].agent, reason)
    if not grown:
        raise Broken("rollouts", "", None, "there is none: give one JSON object a line")
    steps: dict[int, list[Tree]] = {step: [] for step in sorted({key[0] for key in grown})}
    for (step, _, _), tree in grown.items():
        steps[step].append(Tree(text_of(tree.problem), tree.nodes))
    return steps


def rows_of(lines: Iterable[bytes], name: str) -> Iterator[tuple[str, Mapping[str, Any], int]]:
    """Yields the rollouts of a file's lines, those of traces too; empty lines are skipped. A file
    that begins with a brace alone is what `trackio list traces --json` prints. Raises `Broken`."""
    for place, number, row in _objects(iter(lines), name):
        try:
            for rollout in rollouts_in(row, number):
                yield place, rollout, number
        except NoTrace as trace:
            raise Broken(place, trace.field, trace.value, trace.reason) from None


def _objects(lines: Iterator[bytes], name: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yields place, number and fields of each JSON object."""
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number}"
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip() == b"{":
                yield from _exported(b"".join([line, *lines]), name)
                return
        if line.strip():
            yield place, number, _object(place, _decoded(place, line))


def _exported(document: bytes, name: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yields the traces that Trackio's command printed as one document."""
    traces = _object(name, _decoded(name, document)).get("traces")
    if not isinstance(traces, list):
        reason = "give a list of traces, as of trackio list traces --json, or one object a line"
        raise Broken(name, "traces", traces, reason)
    for number, trace in enumerate(traces, 1):
        place = f"{name}, trace {number}"
        yield place, number, _object(place, trace)


def _decoded(place: str, text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if any(one in text for one in _CONSTANTS):
            with suppress(ValueError, RecursionError):
                # Python's json writes NaN and Infinity, which JSON does not know.
                return json.loads(text, parse_constant=lambda _: None)
        raise Broken(place, "", None, f"this is no JSON: {error}") from None


def _object(place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Broken(place, "", None, f"give a JSON object, not {_shown(value)}")
    return value


def events_of(
    steps: Mapping[int, list[Tree]], session: uuid.UUID, time: float
) -> Iterator[dict[str, Any]]:
    """Yields the events of a whole run, from its start to its end, without their seq."""
    first = (session.int >> 96 >> 1) * 2**22  # below 2**53, the browser's integers
    emitted: list[dict[str, Any]] = []
    trees = 0

    def emit(
        kind: str, payload: Mapping[str, Any], tree: int | None = None, node: int | None = None
    ) -> None:
        one = {"time": time, "kind": kind, "tree": tree, "node": node, "payload": payload}
        emitted.append(one)

    def new_tree() -> int:
        nonlocal trees
        trees += 1
        return first + trees

    agents = {node.agent: None for grown in steps.values() for tree in grown for node in tree.nodes}
    emit("run.state", {"state": "running"})
    emit("run.planned", {"steps": max(steps), "agents": list(agents)})
    for step, grown in steps.items():
        record_step(emit, new_tree, step, grown)
        yield from emitted
        emitted.clear()
    emit("run.state", {"state": "finished"})
    yield from emitted


FIELDS = {
    "problem", "parent", "agent", "text", "reward", "tokens", "id", "step", "advantage", "cut",
    "group",
}  # fmt: skip


def _refuse_unknown(place: str, row: Mapping[str, Any]) -> None:
    for name, value in row.items():
        if name not in FIELDS:
            reason = f"there is no such field: give {', '.join(sorted(FIELDS))}"
            raise Broken(place, text_of(name, 80), value, reason)
    for name in ("problem", "text", "reward"):
        if name not in row:
            raise Broken(place, "", None, f"the field {name} is missing")


def _node(place: str, row: Mapping[str, Any], parent: int) -> Node:
    agent = _text(place, row, "agent", AGENT)
    if not 1 <= len(agent) <= LONGEST_AGENT or not is_shown(agent):
        reason = f"give 1 to {LONGEST_AGENT} printable characters, not blanks alone"
        raise Broken(place, "agent", agent, reason)
    cut = row.get("cut", False)
    if not isinstance(cut, bool):
        raise Broken(place, "cut", cut, "give true or false")
    return Node(
        text=text_of(_text(place, row, "text")), reward=_number(place, row, "reward"),
        advantage=_number(place, row, "advantage"), tokens=_whole(place, row, "tokens", 0),
        is_cut=cut, agent=agent, parent=parent,
    )  # fmt: skip


def _text(place: str, row: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str):
        raise Broken(place, name, value, "give a text")
    if default is None and name == "problem" and not value.strip():
        raise Broken(place, name, value, "it is empty: give the problem's text, or its name")
    return value


def _number(place: str, row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    try:
        # A sum of all rewards of a file is finite too.
        is_number = not isinstance(value, bool) and abs(float(value)) < LARGEST_REWARD
    except (TypeError, ValueError, OverflowError):
        is_number = False
    if not is_number or isinstance(value, str):
        raise Broken(place, name, value, "give a number, or null")
    return float(value)


def _whole(place: str, row: Mapping[str, Any], name: str, default: int) -> int:
    value = row.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise Broken(place, name, value, f"give a whole number from 0 to {LARGEST}")
    return value


def _key(place: str, name: str, value: Any) -> Key:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Broken(place, name, value, "give a text or a whole number")
    if isinstance(value, str) and len(value) > limits.LONGEST_NAME:
        raise Broken(place, name, value, f"give {limits.LONGEST_NAME} characters at most")
    return value
