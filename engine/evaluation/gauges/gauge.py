"""The socket of gauges: a pure function from the events of a step to numbers by name.

Invariants of every gauge:
- Its numbers are a function of its options and of the events so far: no clock, no random numbers,
  no order of a set. What it knows of earlier steps is its state, which is made from the events
  again when a run resumes, and so is in no checkpoint.
- It changes nothing but its state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config.methods import Figure
from engine.events.vocabulary import (
    AgentUpdated,
    EvaluationResult,
    NodeClosed,
    NodeOpened,
    StepEnded,
    TreeClosed,
    TreeOpened,
)

TAGS = "tags"
NEEDS = frozenset({TAGS})
"""Names of data that events hold only where a gauge needs them: `tags`, those of a tree's problem
(`TreeOpened.tags`)."""


@dataclass(frozen=True, slots=True)
class StepNode:
    """A closed node, as its events say."""

    id: int
    opened: NodeOpened
    closed: NodeClosed

    @property
    def agent(self) -> str:
        return self.opened.agent

    @property
    def solves(self) -> bool:
        """Whether its raw score is 1."""
        return self.closed.score == 1.0


@dataclass(frozen=True, slots=True)
class StepTree:
    """A credited tree, filtered ones included, as its events say."""

    opened: TreeOpened
    nodes: Sequence[StepNode]
    """In the order in which they were closed."""
    closed: TreeClosed


@dataclass(frozen=True, slots=True)
class StepEvents:
    """What the log says of one step: the events since the end of the step before. With
    `training.overlap`, an update is among those of the step in which it ended."""

    ended: StepEnded
    trees: Sequence[StepTree]
    updates: Sequence[AgentUpdated]
    evaluations: Sequence[EvaluationResult]


@dataclass(frozen=True)
class GaugeContext:
    """What a gauge reads apart from a step's events."""

    agents: tuple[str, ...]
    """Names of the team's agents, in its order."""
    options: Any = None
    """The gauge's own `Options`; None if it has none."""
    state: Any = None
    """The gauge's state, if it has one: it may change it."""


Value = float | None
"""None where there is no value, such as a share of nothing: a gap in the chart."""
Numbers = Mapping[str, Value | Mapping[str, Value]]
"""By the name of a figure, a value, or several by part: an agent, a tag. A part is a line of the
figure's chart."""


@dataclass(frozen=True)
class Gauge:
    """A gauge of `engine.evaluation.gauges.methods`."""

    numbers: Callable[[StepEvents, GaugeContext], Numbers]
    """Returns the numbers of a step; called once per step, in order."""
    figures: Mapping[str, Figure]
    """The figures that it may return."""
    state: Callable[[Any], Any] | None = None
    """Returns an empty state, given the options."""
    needs: frozenset[str] = frozenset()
    """Names in `NEEDS`."""


def gauge_of(module: Any) -> Gauge:
    """Returns the gauge that a module holds: `numbers`, `FIGURES` and, if it has them, `state` and
    `NEEDS`.

    Raises:
        ValueError: it holds none.
    """
    if not callable(numbers := getattr(module, "numbers", None)):
        raise ValueError("has no function numbers(step, context)")
    if not (figures := getattr(module, "FIGURES", None)):
        raise ValueError("has no FIGURES, the titles of its charts")
    needs = frozenset(getattr(module, "NEEDS", ()))
    if unknown := needs - NEEDS:
        raise ValueError(f"NEEDS {', '.join(sorted(unknown))}: only {', '.join(NEEDS)} can be")
    return Gauge(numbers, figures, getattr(module, "state", None), needs)
