"""A tree as a picture: leaves side by side, a parent above the middle of its children.

An agent is a shape and a colour, an outcome a fill and a sign, as in the trees of a run's page
(static/js/forest/marks.js).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.config.names import shown_name
from webapp.reports.drawing.charts import number

ACROSS, DOWN, MARGIN, RADIUS = 30, 46, 20, 8.5
LEAST_WIDTH = 160
_SIGNS = {
    "passed": "M-3.6 0.2L-0.9 3L3.8-2.9",
    "failure": "M-3-3L3 3M3-3L-3 3",
    "failed": "M-3 0.4L3 0.4",
}
WORDS = {
    "open": "open",
    "failure": "sandbox failure",
    "passed": "passed",
    "partial": "partly right",
    "failed": "failed",
}


def _ring(sides: int, turn: float, *radii: float) -> str:
    """Path of a polygon around (0, 0) whose corners have these distances in turn."""
    corners = []
    for index in range(sides):
        angle = turn + 2 * math.pi * index / sides
        radius = RADIUS * radii[index % len(radii)]
        corners.append(f"{radius * math.cos(angle):.1f} {radius * math.sin(angle):.1f}")
    return f"M{'L'.join(corners)}Z"


_R = RADIUS
SHAPES = (
    f"M{-_R} 0A{_R} {_R} 0 1 1 {_R} 0A{_R} {_R} 0 1 1 {-_R} 0Z",
    _ring(4, math.pi / 4, 1.25),
    _ring(3, -math.pi / 2, 1.3),
    _ring(4, -math.pi / 2, 1.25),
    _ring(6, 0.0, 1.08),
    _ring(10, -math.pi / 2, 1.35, 0.6),
)
"""Of the agents in their order; the first again after the last."""


@dataclass(frozen=True)
class Agent:
    name: str
    shape: str
    look: int


@dataclass(frozen=True)
class Node:
    id: int
    x: float
    y: float
    shape: str
    look: int
    outcome: str
    sign: str
    title: str
    parent: str
    agent: str
    words: str
    score: str


@dataclass(frozen=True)
class TreeDrawing:
    kind: str
    name: str
    about: str
    statement: str
    agents: list[Agent]
    outcomes: list[tuple[str, str, str]]
    """Those that occur: name, words and sign."""
    nodes: list[Node]
    edges: str
    root: tuple[float, float]
    width: int
    height: int
    left_out: int
    runs: list[dict[str, Any]]


def tree_drawing(data: dict[str, Any]) -> TreeDrawing:
    """Returns the drawing of a tree's data (`embeds.trees`)."""
    positions = layout(data["nodes"])
    widest = max((x for x, _ in positions.values()), default=0.0)
    shift = max(0.0, LEAST_WIDTH - 2 * MARGIN - widest * ACROSS) / 2
    at: dict[int, tuple[float, float]] = {
        key: (round(MARGIN + shift + x * ACROSS, 1), float(MARGIN + y * DOWN))
        for key, (x, y) in positions.items()
    }
    agents = [
        Agent(shown_name(name), SHAPES[index % len(SHAPES)], index % len(SHAPES))
        for index, name in enumerate(data["agents"])
    ]
    looks = dict(zip(data["agents"], agents, strict=True))
    end = "solved" if data["solved"] else "unsolved" if data["closed"] else "growing"
    shown = len(data["nodes"])
    name = f"tree {data['tree']} of {data['runs'][0]['name']}, step {data['step']}"
    present = {node["outcome"] for node in data["nodes"]}
    return TreeDrawing(
        kind="tree",
        name=name,
        about=f"{name}: problem {shown_name(data['problem'])}, {shown} nodes, {end}",
        statement=data["statement"],
        agents=agents,
        outcomes=[(one, WORDS[one], _SIGNS.get(one, "")) for one in WORDS if one in present],
        nodes=[_node(node, at, looks[node["agent"]]) for node in data["nodes"]],
        edges="".join(_edge(at[_parent(node, at)], at[node["id"]]) for node in data["nodes"]),
        root=at[0],
        width=math.ceil(2 * (MARGIN + shift) + widest * ACROSS),
        height=int(2 * MARGIN + DOWN * max(y for _, y in positions.values())),
        left_out=data["left_out"],
        runs=data["runs"],
    )


def layout(nodes: Iterable[dict[str, Any]]) -> dict[int, tuple[float, int]]:
    """Returns (x, depth) by id, the root's (0) included; `nodes` have parents first."""
    below: dict[int, list[int]] = {0: []}
    for node in nodes:
        parent = node["parent"] if node["parent"] in below else 0
        below[parent].append(node["id"])
        below[node["id"]] = []
    depth = {0: 0}
    for parent, children in below.items():  # parents stand before their children
        depth |= dict.fromkeys(children, depth[parent] + 1)
    x: dict[int, float] = {}
    leaves = 0
    order, pending = [], [0]
    while pending:
        order.append(node_id := pending.pop())
        pending += reversed(below[node_id])
    for node_id in order:
        if not below[node_id]:
            x[node_id], leaves = leaves, leaves + 1
    for node_id in reversed(order):
        if children := below[node_id]:
            x[node_id] = (x[children[0]] + x[children[-1]]) / 2
    return {node_id: (x[node_id], depth[node_id]) for node_id in order}


def _parent(node: dict[str, Any], at: dict[int, tuple[float, float]]) -> int:
    return node["parent"] if node["parent"] in at else 0


def _edge(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (to_x, to_y) = start, end
    middle = (y + to_y) / 2
    return f"M{x:g} {y:g}C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"


def _node(node: dict[str, Any], at: dict[int, tuple[float, float]], agent: Agent) -> Node:
    x, y = at[node["id"]]
    score = "–" if node["score"] is None else number(node["score"])
    words = WORDS[node["outcome"]]
    advantage = node["advantage"]
    more = "" if advantage is None else f", advantage {number(advantage)}"
    parent = _parent(node, at)
    return Node(
        id=node["id"],
        x=x,
        y=y,
        shape=agent.shape,
        look=agent.look,
        outcome=node["outcome"],
        sign=_SIGNS.get(node["outcome"], ""),
        title=f"Node {node['id']}, {agent.name}: {words}, score {score}{more}",
        parent="problem" if parent == 0 else str(parent),
        agent=agent.name,
        words=words,
        score=score,
    )
