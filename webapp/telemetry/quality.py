"""Search quality of a step, from the nodes of its trees. Pure.

Per tree the nodes count in the order in which they were closed:

- `search.trees`, and means over them: `search.width` (children of the root), `search.depth` (of the
  deepest node), `search.nodes`; `search.duplicates`: share of programs that their tree had already;
- `best.K`: best raw score of the first K nodes, mean over trees; `within.K`: share of trees that
  one of their first K nodes solved, which is Pass@K of the search; K = 1, 2, 4, ... up to the
  largest tree (a smaller tree counts with what it has);
- `ends.VERDICT`, `stops.REASON`: shares of all nodes;
- `no_program.REASON`: share of all nodes whose answers hold no program, by reason;
- `search.hacking_nodes`: number of programs that pass every public test and fail a private one,
  which is how reward hacking shows; `hacking.share`: their share of all verified programs, and
  `hacking.of_public` of those that pass every public test (absent while none does);
- `cost.tokens_per_solved`, `cost.nodes_per_solved`: absent while no tree is solved, the
  former also where the tokens of a node are not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.events.states import NoProgram, Verdict


@dataclass(frozen=True, slots=True)
class ClosedNode:
    """Fields of a closed node that the metrics need."""

    tree: int
    parent: int
    depth: int
    score: float | None
    verdict: str
    stop: str
    tokens: int | None
    """None if the engine did not count them."""
    program: str
    """Key that two nodes share if and only if they wrote the same program."""
    passes_public: bool
    """Whether the program passes every public test."""
    no_program: str = ""
    """Why its answer holds no program; empty if it holds one, or if that was not recorded."""


def quality(nodes: Iterable[ClosedNode]) -> Iterator[tuple[str, float]]:
    """Yields (name, value) of all metrics of one step's trees; nothing without a node."""
    trees: dict[int, list[ClosedNode]] = defaultdict(list)
    for node in nodes:
        trees[node.tree].append(node)
    grown = list(trees.values())
    if grown:
        yield from _shape(grown)
        yield from _over_budget(grown)
        yield from _ends(grown)
        yield from _hacking(grown)
        yield from _cost(grown)


def _shape(trees: list[list[ClosedNode]]) -> Iterator[tuple[str, float]]:
    nodes = sum(map(len, trees))
    yield "search.trees", len(trees)
    yield "search.nodes", nodes / len(trees)
    yield "search.width", sum(sum(n.parent == 0 for n in tree) for tree in trees) / len(trees)
    yield "search.depth", sum(max(n.depth for n in tree) for tree in trees) / len(trees)
    distinct = sum(len({n.program for n in tree}) for tree in trees)
    yield "search.duplicates", 1 - distinct / nodes


def _over_budget(trees: list[list[ClosedNode]]) -> Iterator[tuple[str, float]]:
    largest = max(map(len, trees))
    budget = 1
    while True:
        best = [max(node.score or 0.0 for node in tree[:budget]) for tree in trees]
        yield f"best.{budget}", sum(best) / len(best)
        yield f"within.{budget}", sum(one == 1.0 for one in best) / len(best)
        if budget >= largest:
            return
        budget = min(budget * 2, largest)


def _ends(trees: list[list[ClosedNode]]) -> Iterator[tuple[str, float]]:
    nodes = [node for tree in trees for node in tree]
    for prefix, ends in (
        ("ends", Counter(node.verdict for node in nodes)),
        ("stops", Counter(node.stop for node in nodes)),
    ):
        for name, number in sorted(ends.items()):
            yield f"{prefix}.{name}", number / len(nodes)
    reasons = Counter(node.no_program for node in nodes)
    for reason in NoProgram:
        if reasons[reason] or not reason.of_endpoints:
            yield f"no_program.{reason}", reasons[reason] / len(nodes)


def _hacking(trees: list[list[ClosedNode]]) -> Iterator[tuple[str, float]]:
    verified = [n for tree in trees for n in tree if n.verdict != Verdict.SANDBOX_FAILURE]
    public = [node for node in verified if node.passes_public]
    hacking = sum(node.verdict != Verdict.PASSED for node in public)
    yield "search.hacking_nodes", hacking
    if verified:
        yield "hacking.share", hacking / len(verified)
    if public:
        yield "hacking.of_public", hacking / len(public)


def _cost(trees: list[list[ClosedNode]]) -> Iterator[tuple[str, float]]:
    solved = sum(any(node.score == 1.0 for node in tree) for tree in trees)
    if solved:
        tokens = [node.tokens for tree in trees for node in tree]
        known = [one for one in tokens if one is not None]
        if len(known) == len(tokens):
            yield "cost.tokens_per_solved", sum(known) / solved
        yield "cost.nodes_per_solved", sum(map(len, trees)) / solved
