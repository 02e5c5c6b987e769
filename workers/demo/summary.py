"""The demo's summary: a fold over a run's events. Pure: events in, numbers out.

Invariant: it counts nothing of a step that a resume voided, only what the repeated step did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.events.vocabulary import Event

TEST = "test"
STATED = "stated"
"""Family of problems to which the summary's figures belong where there are several: a first attempt
at an underspecified problem has to guess, so that its Pass@1 cannot reach 1."""


@dataclass
class Step:
    """Counts of one training step."""

    trees: int = 0
    nodes: int = 0
    tokens: int = 0
    ended: bool = False


@dataclass
class DemoSummary:
    """Running counts; pass it every event, in order, with `add`."""

    resumed_steps: int = 0
    training_seconds: float = 0.0
    _steps: dict[int, Step] = field(default_factory=dict)
    _step_of_tree: dict[int, int] = field(default_factory=dict)
    _evaluations: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Counts one event; ignores kinds that no number depends on."""
        payload = event.payload
        match event.kind:
            case "step.start":
                self._steps[payload["step"]] = Step()
            case "tree.open":
                self._step_of_tree[event.tree] = payload["step"]
                self._step(payload["step"]).trees += 1
            case "node.close" if event.tree in self._step_of_tree:
                self._step(self._step_of_tree[event.tree]).nodes += 1
            case "step.end":
                step = self._step(payload["step"])
                step.ended, step.tokens = True, payload["tokens"]
                self.training_seconds = payload["training_seconds"]
            case "eval.result":
                self._evaluations[payload["split"], payload["step"]] = payload
            case "run.resumed":
                self._void_after(payload["step"])

    def report(self) -> dict[str, Any]:
        """Returns the numbers of the demo's JSON that follow from the events alone."""
        steps = self._steps.values()
        evaluations = self._evaluations.values()
        nodes = sum(step.nodes for step in steps)
        before, after = self._before_and_after()
        return {
            "training_seconds": round(self.training_seconds, 2),
            "steps": sum(step.ended for step in steps),
            "agents": _agents(_of_family(before, STATED), _of_family(after, STATED)),
            "team": _team(_of_family(before, STATED), _of_family(after, STATED)),
            "families": {
                family: {
                    "agents": _agents(_of_family(before, family), _of_family(after, family)),
                    "team": _team(_of_family(before, family), _of_family(after, family)),
                }
                for family in before.get("families", {})
            },
            "trees": sum(step.trees for step in steps),
            "nodes": nodes,
            "rollouts": nodes + sum(e.get("rollouts", 0) for e in evaluations),
            "tokens": sum(s.tokens for s in steps) + sum(e.get("tokens", 0) for e in evaluations),
            "resumed_steps": self.resumed_steps,
        }

    def _step(self, number: int) -> Step:
        return self._steps.setdefault(number, Step())

    def _void_after(self, last: int) -> None:
        void = [number for number in self._steps if number > last]
        self.resumed_steps += len(void)
        for number in void:
            del self._steps[number]
        self._step_of_tree = {t: s for t, s in self._step_of_tree.items() if s <= last}
        self._evaluations = {k: e for k, e in self._evaluations.items() if k[1] <= last}

    def _before_and_after(self) -> tuple[dict[str, Any], dict[str, Any]]:
        steps = sorted(step for split, step in self._evaluations if split == TEST)
        if not steps:
            return {}, {}
        first, last = (self._evaluations[TEST, step] for step in (steps[0], steps[-1]))
        return first, last if len(steps) > 1 else {}


def _of_family(figures: dict[str, Any], family: str) -> dict[str, Any]:
    """Returns the figures of an evaluation on one family; all of them if it reports none."""
    return figures.get("families", {}).get(family, figures)


def _agents(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "pass1_before": value,
            "pass1_after": after.get("agents", {}).get(name),
            "pass1_se": after.get("standard_errors", {}).get(name),
            "problems": before["problems"],
        }
        for name, value in before.get("agents", {}).items()
    }


def _team(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {
        "tree8_before": before.get("tree"),
        "tree8_after": after.get("tree"),
        "samples8_before": before.get("samples"),
        "samples8_after": after.get("samples"),
    }
