"""The gauges of a run: a fold of its log, live or replayed.

A number of the gauge G is logged as `G.FIGURE`, or `G.FIGURE.PART`, in one `metric.logged` per
step.
A gauge that fails is left out from then on, with a warning in the log; the training goes on.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from engine.config.evaluation import EvaluationConfig
from engine.config.methods import registry
from engine.evaluation.gauges import GAUGES
from engine.evaluation.gauges.gauge import (
    Gauge,
    GaugeContext,
    Numbers,
    StepEvents,
    StepNode,
    StepTree,
)
from engine.events.timeline import surviving_events
from engine.events.vocabulary import (
    KINDS,
    AgentUpdated,
    EvaluationResult,
    Event,
    LogLine,
    MetricLogged,
    NodeClosed,
    NodeOpened,
    Payload,
    RunPlanned,
    StepEnded,
    TreeClosed,
    TreeOpened,
)

MOST_PARTS = 64
"""Parts of a figure: a team has no more agents, and a chart no more lines to tell apart."""
_LONGEST_PART = 60


def needs_of(config: EvaluationConfig) -> frozenset[str]:
    """Returns the names of the data that the gauges of these settings need in events."""
    return frozenset().union(*(GAUGES[name].needs for name in config.gauges))


def replayed(events: Iterable[Event], config: EvaluationConfig) -> list[Payload]:
    """Returns what the gauges of these settings log of a stored log, in order."""
    gauges, payloads = RunGauges(config), list[Payload]()
    for event in surviving_events(events):
        gauges.apply(event)
        if event.kind == "step.end":
            payloads += gauges.after_step()
    return payloads


class RunGauges:
    """Watcher of a log: all gauges that a run's settings name."""

    def __init__(self, config: EvaluationConfig):
        self._config = config
        self._gauges = {name: GAUGES[name] for name in config.gauges}
        self._states = {
            name: gauge.state(config.options("gauges", name))
            for name, gauge in self._gauges.items()
            if gauge.state
        }
        self._agents: tuple[str, ...] = ()
        self._trees: dict[int | None, _Growing] = {}
        self._begin()

    def apply(self, event: Event) -> None:
        """Folds one event of the log."""
        if event.kind not in _READ:
            return
        payload = typed(event)
        match payload:
            case RunPlanned():
                self._agents = tuple(payload.agents)
            case TreeOpened():
                self._trees[event.tree] = _Growing(payload)
            case NodeOpened() | NodeClosed() | TreeClosed():
                self._of_tree(event, payload)
            case AgentUpdated():
                self._updates.append(payload)
            case EvaluationResult():
                self._evaluations.append(payload)
            case StepEnded():
                self._ended = payload

    def after_step(self) -> list[Payload]:
        """Returns the event of the numbers of the step whose end was applied last, and a warning of
        each gauge that fails."""
        if self._ended is None:
            return []
        step = StepEvents(self._ended, self._credited, self._updates, self._evaluations)
        self._begin()
        numbers: dict[str, float] = {}
        warnings: list[Payload] = []
        for name, gauge in list(self._gauges.items()):
            options = self._config.options("gauges", name)
            context = GaugeContext(self._agents, options, self._states.get(name))
            try:
                numbers |= _named(name, gauge, gauge.numbers(step, context))
            except Exception as error:  # a chart is never worth the run
                del self._gauges[name]
                logging.getLogger(__name__).exception("the gauge %s fails; it is off", name)
                warnings.append(LogLine("warning", _failure(name, error)))
        return [*_event(step.ended.step, numbers), *warnings]

    def _begin(self) -> None:
        """Starts the next step. Trees that are still growing stay."""
        self._ended: StepEnded | None = None
        self._credited: list[StepTree] = []
        self._updates: list[AgentUpdated] = []
        self._evaluations: list[EvaluationResult] = []

    def _of_tree(self, event: Event, payload: NodeOpened | NodeClosed | TreeClosed) -> None:
        if (tree := self._trees.get(event.tree)) is None:
            return
        if isinstance(payload, TreeClosed):
            del self._trees[event.tree]
            self._credited.append(StepTree(tree.opened, tree.nodes, payload))
        elif event.node is None:
            return
        elif isinstance(payload, NodeOpened):
            tree.waiting[event.node] = payload
        elif opened := tree.waiting.pop(event.node, None):
            tree.nodes.append(StepNode(event.node, opened, payload))


class _Growing:
    """A tree that is not credited yet."""

    def __init__(self, opened: TreeOpened):
        self.opened = opened
        self.waiting: dict[int, NodeOpened] = {}
        self.nodes: list[StepNode] = []


_READ = frozenset(
    kind.__struct_config__.tag
    for kind in (RunPlanned, TreeOpened, NodeOpened, NodeClosed, TreeClosed, AgentUpdated,
                 EvaluationResult, StepEnded)
)  # fmt: skip


def typed(event: Event) -> Payload:
    """Returns the payload as its class, with nan for a number that was not finite: the file holds
    null in its place. So it is the same before and after it was written."""
    payload = dict(event.payload)
    for field in msgspec.structs.fields(KINDS[event.kind]):
        value = payload.get(field.name, UNSET)
        if field.type is float and value is None:
            payload[field.name] = math.nan
        elif isinstance(value, dict) and field.type is not dict[str, Any]:
            payload[field.name] = {k: math.nan if v is None else v for k, v in value.items()}
    return msgspec.structs.replace(event, payload=payload).typed()


def _event(step: int, numbers: Mapping[str, float]) -> Iterator[MetricLogged]:
    finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
    others: Any = {name: str(value) for name, value in numbers.items() if name not in finite}
    if numbers:
        yield MetricLogged(step, numbers=finite or UNSET, nonfinite=others or UNSET)


def _named(name: str, gauge: Gauge, numbers: Numbers) -> dict[str, float]:
    """Returns the numbers of a gauge by the names under which they are logged.

    Raises:
        ValueError: one is of no figure of the gauge, or a figure has too many parts.
    """
    named: dict[str, float] = {}
    for figure, value in numbers.items():
        if figure not in gauge.figures:
            raise ValueError(f"{figure!r} is not in its FIGURES: {', '.join(gauge.figures)}")
        key = registry("gauges").figure(name, figure)
        if not isinstance(value, Mapping):
            named[key] = _number(value)
            continue
        if len(value) > MOST_PARTS:
            raise ValueError(f"{figure!r} has {len(value)} parts; at most {MOST_PARTS} are charted")
        named |= {f"{key}.{_part(part)}": _number(one) for part, one in value.items()}
    return named


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _part(name: str) -> str:
    """Returns a part's name as series can have it: printable, short, without backslashes."""
    plain = "".join(one if one.isprintable() and one != "\\" else "_" for one in name)
    return plain[:_LONGEST_PART] or "_"


def _failure(name: str, error: Exception) -> str:
    reason = f"{type(error).__name__}: {error}"
    return f"evaluation.gauges: {name} failed and is left out from here on ({reason})"
