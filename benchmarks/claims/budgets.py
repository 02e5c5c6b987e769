"""Budgets that a training run used, counted in its own events, and their comparison.

Invariant: a budget that differs from the control's by more than its tolerance is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.claims.claim import Arm, Claim
from engine.config.schema import RunConfig
from engine.config.weight_sharing import weight_owner
from engine.events.timeline import surviving_events
from engine.events.vocabulary import Event
from engine.resources.shapes import shape_of

TOLERANCE = {"nodes": 0.0, "learned_tokens": 0.1, "parameters": 0.1}
"""Relative difference up to which two budgets count as equal."""


@dataclass(frozen=True)
class TrainingBudget:
    """Counts over the events of a run that no resume voided."""

    steps: int
    nodes: int
    refined: int
    """Nodes at depth 2 or more."""
    failed: int
    """Nodes whose verification failed technically."""
    filtered_trees: int
    learned_nodes: int
    """Nodes in updates, as the updates report them."""
    learned_tokens: int
    """Output tokens of these nodes, from the trees that the updates name."""
    seconds: float
    """Seconds of training, without start-up."""


def training_budget(events: Iterable[Event]) -> TrainingBudget:
    """Returns the budget of a run's log."""
    tokens: dict[int | None, list[tuple[str, int]]] = {}
    agents: dict[tuple[int | None, int | None], str] = {}
    steps = nodes = refined = failed = filtered = learned_nodes = learned_tokens = 0
    seconds = 0.0
    for event in surviving_events(events):
        payload = event.payload
        match event.kind:
            case "node.open":
                agents[event.tree, event.node] = payload["agent"]
                refined += payload["depth"] > 1
            case "node.close":
                nodes += 1
                if payload["score"] is None:
                    failed += 1
                else:
                    written = agents[event.tree, event.node], payload["tokens"]
                    tokens.setdefault(event.tree, []).append(written)
            case "agent.update":
                team = {payload["agent"], *payload["shared_with"]}
                learned_nodes += payload["nodes"]
                learned_tokens += sum(
                    count
                    for tree in payload["trees"]
                    for agent, count in tokens.get(tree, ())
                    if agent in team
                )
            case "step.end":
                steps, seconds = payload["step"], payload["training_seconds"]
                filtered += payload["filtered_trees"]
    return TrainingBudget(
        steps, nodes, refined, failed, filtered, learned_nodes, learned_tokens, seconds
    )


def parameters(config: RunConfig, models: Mapping[str, Path | str]) -> int:
    """Returns the weights of a team, shared ones once; `models` has the model of each owner.

    Raises:
        ValueError: the shape of a model is unknown.
    """
    total = 0
    for owner in dict.fromkeys(weight_owner(agent) for agent in config.agents):
        shape = shape_of(str(models[owner]))
        if shape is None:
            raise ValueError(f"{models[owner]}: the number of its weights is unknown")
        total += shape.parameters
    return total


def mismatches(
    claim: Claim, arm: Arm, mine: Mapping[str, float], control: Mapping[str, float]
) -> list[str]:
    """Returns a sentence for every budget that should equal the control's and does not."""
    primary = arm.reads.get(claim.primary, claim.primary)
    theirs_arm = claim.control_of(arm)
    assert theirs_arm is not None
    theirs = theirs_arm.reads.get(claim.primary, claim.primary)
    sentences = []
    for budget in claim.budgets_of(arm):
        pairs = [(budget, budget)]
        if budget == "nodes":
            pairs.append((answers_key(primary), answers_key(theirs)))
        for key, other in pairs:
            one, two = mine.get(key, 0.0), control.get(other, 0.0)
            if abs(one - two) > TOLERANCE[budget] * max(abs(two), 1e-12):
                ratio = f", {one / two:.2f} times" if two else ""
                sentences.append(f"{_words(key)}: {one:,.0f} and {two:,.0f}{ratio}")
    return sentences


def answers_key(figure: str) -> str:
    """Returns the budget of the answers behind a figure of an evaluation."""
    part = figure.partition("/")[0]
    return f"{part if part in ('tree', 'samples') else 'single'}_answers"


def _words(key: str) -> str:
    return key.replace("_", " ")
