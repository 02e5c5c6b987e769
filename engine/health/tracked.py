"""Monitor of a run of another trainer: the same rules, over the figures that its program logs.

A pure fold of its events. A step has ended when a value of a later one arrives, or the run does:
trainers log a step in several rows. Rules over trees read those that integrations record and
imports bring (`webapp.client.tracking.trees`); a trainer that records none may log shares instead.
A rule without `GENERAL_ADVICE` does not judge such runs, and one that needs a figure which is not
logged finds nothing.

Invariants: what it adds is a function of the events alone, however they are divided, so state that
was saved and loaded again (`State`) neither loses nor repeats a warning. A value of a step that has
ended is too late to be judged.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec

from engine.events.states import StopReason
from engine.events.vocabulary import Event, HealthChanged, RunState
from engine.health import RULES
from engine.health import logged_names as names
from engine.health.answers import TreeAnswers
from engine.health.history import History, Step, Update, Validation
from engine.health.monitor import Monitor

KEPT = 64
"""Newest steps, updates and validations: the longest window of a rule has 51."""
AGENT = ""
"""Whom figures of a whole run are about."""
OF_TREES = ("equal_groups", "repeated_answers", "answer_loops", "truncated_answers", "idle_agent")
"""Rules that read trees; two of them also read shares."""
OF_SHARES = ("equal_groups", "truncated_answers")
SHORTEST = 32
"""Characters of an answer that is compared with others: a letter or a number may well be right for
half of the problems."""
_SCATTER = 10
"""Newest differences between measurements of which their standard error is estimated."""
_ENDS = (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)
_WORDS = re.compile(r"\w+|[^\w\s]")
_OF_TREES = ("tree.open", "node.open", "node.text", "node.close", "node.credit", "tree.close")


class TextHistory(History):
    """History of trees whose programs are whole answers, and whose tokens are not recorded."""

    def apply(self, event: Event) -> None:
        if event.kind == "node.close" and (tree := self.growing.get(event.tree)):
            text = event.payload["program"]
            if not tree.text and event.payload["stop"] == StopReason.MAX_TOKENS:
                tree.text = _WORDS.findall(text)
            if len(text) < SHORTEST:
                event = msgspec.structs.replace(event, payload={**event.payload, "program": ""})
        super().apply(event)


class MonitorState(msgspec.Struct, array_like=True):
    """What a `Monitor` with its history remembers."""

    agents: list[str]
    steps: list[Step]
    updates: dict[str, list[Update]]
    baselines: dict[str, list[Update]]
    highest_rates: dict[str, float]
    validations: list[Validation]
    trees: list[tuple[int, TreeAnswers]]
    credited: list[TreeAnswers]
    rewards: dict[str, list[float]]
    open: list[HealthChanged]
    calm: list[tuple[str, str, int]]


class State(msgspec.Struct):
    """What a `TrackedMonitor` remembers of the events so far."""

    figures: MonitorState | None = None
    trees: MonitorState | None = None
    settings: dict[str, float] = {}
    step: int = -1
    """Step whose values are gathered; -1 without one."""
    time: float = 0.0
    row: dict[str, float] = {}
    has_trees: bool = False


class TrackedMonitor:
    """Fold of a tracked run's log; create it with the state that an earlier one returned."""

    def __init__(self, state: State | None = None):
        self.state = state or State()
        general = {name: rule for name, rule in RULES.items() if hasattr(rule, "GENERAL_ADVICE")}
        of_trees = {name: rule for name, rule in general.items() if name in OF_TREES}
        judged_by_figures = {
            name: rule
            for name, rule in general.items()
            if name not in OF_TREES or (name in OF_SHARES and not self.state.has_trees)
        }
        self._figures = Monitor(rules=judged_by_figures, history=History(kept=KEPT))
        self._figures.history.agents = [AGENT]
        self._trees = Monitor(rules=of_trees, history=TextHistory(kept=KEPT))
        for monitor, saved in (
            (self._figures, self.state.figures),
            (self._trees, self.state.trees),
        ):
            if saved:
                _restore(monitor, saved)
        self._set_up()

    @staticmethod
    def reads(event: Event) -> bool:
        """Returns whether an event can change what is found or remembered, but for a run's end."""
        if event.kind == "metric.logged":
            return any(map(names.figure_of, event.payload.get("numbers", ())))
        if event.kind == "run.described":
            return bool(names.settings_in(event.payload.get("config", {})))
        return event.kind in _OF_TREES or event.kind in ("step.end", "health")

    @staticmethod
    def ends(event: Event) -> bool:
        """Returns whether the run ends with this event."""
        return event.kind == "run.state" and event.payload["state"] in _ENDS

    def apply(self, event: Event) -> list[HealthChanged]:
        """Folds one event; returns the warnings that open and close with it, which take effect
        here at once. Those of a run's end belong before it, others after the event."""
        if event.kind == "metric.logged":
            return self._logged(event)
        if event.kind == "run.described":
            self.state.settings |= names.settings_in(event.payload.get("config", {}))
            self._set_up()
        elif self.ends(event):
            return self._end_step(-1)
        elif event.kind == "health":
            self._changed(event)
        elif event.kind in _OF_TREES or event.kind == "run.planned":
            self._grow(event)
        elif event.kind == "step.end":
            self._name_agents(event.payload)
            self._trees.apply(event)
            _trim_rewards(self._trees.history)
            return self._take_effect(self._trees.after_step())
        return []

    def saved(self) -> State:
        """Returns the state after the events so far."""
        self.state.figures, self.state.trees = map(_saved, (self._figures, self._trees))
        return self.state

    def forget_trees(self) -> None:
        """Discards the trees that have not ended; for a log that never ends them."""
        self._trees.history.growing.clear()
        self._trees.history.credited.clear()

    def _set_up(self) -> None:
        self._figures.history.setup = names.setup_of(self.state.settings, AGENT)

    def _grow(self, event: Event) -> None:
        if event.kind == "tree.open" and not self.state.has_trees:
            # From here on trees are counted, and shares are not read.
            self.state.has_trees = True
            self._figures.drop(OF_SHARES)
        self._trees.apply(event)

    def _name_agents(self, payload: Mapping[str, Any]) -> None:
        """Adds agents that no plan named."""
        agents = self._trees.history.agents
        agents += [name for name in payload.get("node_share") or () if name not in agents]

    def _logged(self, event: Event) -> list[HealthChanged]:
        step, row = event.payload["step"], names.figures_in(event.payload.get("numbers", {}))
        if not row or step < self.state.step:
            return []
        changes = self._end_step(step) if step > self.state.step else []
        self.state.row |= row
        self.state.time = event.time
        return changes

    def _end_step(self, following: int) -> list[HealthChanged]:
        """Judges the step that was gathered and begins the `following` one; -1 without one."""
        step, row, state = self.state.step, self.state.row, self.state
        state.row = {}
        state.step = following if following >= 0 else step + 1
        if not names.EVIDENCE & row.keys() and names.VALIDATION not in row:
            return []
        history = self._figures.history
        if names.EVIDENCE & row.keys():
            history.add_update(AGENT, _update(step, row))
        if names.VALIDATION in row:
            history.validations.append(_validation(step, row[names.VALIDATION], history))
        history.add_step(_step(step, state.time, row))
        _trim_rewards(history)
        return self._take_effect(self._figures.after_step())

    def _take_effect(self, changes: list[HealthChanged]) -> list[HealthChanged]:
        general = [_generally(change) for change in changes]
        for change in general:
            body = msgspec.to_builtins(change)
            self._changed(Event(0, 0.0, body.pop("type"), None, None, body))
        return general

    def _changed(self, event: Event) -> None:
        for monitor in (self._figures, self._trees):
            if monitor.judges(event.payload["rule"]):
                monitor.apply(event)


def _trim_rewards(history: History) -> None:
    """Bounds the rewards that wait for a validation, which may never come."""
    for rewards in history.rewards.values():
        del rewards[:-KEPT]


def _generally(change: HealthChanged) -> HealthChanged:
    """Returns the change with advice that names no setting of Grove."""
    if not change.advice:
        return change
    advice = getattr(RULES[change.rule], "GENERAL_ADVICE")  # noqa: B009  modules, of which some lack it
    return msgspec.structs.replace(change, advice=advice)


def _update(step: int, row: Mapping[str, float]) -> Update:
    def figure(name: str) -> float:
        return row.get(name, math.nan)

    return Update(
        step, entropy=figure(names.ENTROPY), clip_fraction=figure(names.CLIP_FRACTION),
        gradient_norm=figure(names.GRADIENT_NORM), learning_rate=figure(names.LEARNING_RATE),
        mismatch=abs(figure(names.MISMATCH)),
    )  # fmt: skip


def _validation(step: int, value: float, history: History) -> Validation:
    """Returns a measurement. Programs log no standard error: it is estimated from the differences
    between successive measurements (von Neumann), which a trend hardly changes."""
    before = [one.agents[AGENT] for one in history.validations]
    squares = [(b - a) ** 2 / 2 for a, b in pairwise([*before[-_SCATTER:], value])]
    error = math.sqrt(sum(squares) / len(squares)) if squares else 0.0
    return Validation(step, {AGENT: value}, {AGENT: error}, measure="score")


def _step(step: int, time: float, row: Mapping[str, float]) -> Step:
    reward = row.get(names.REWARD)
    return Step(
        step=step, time=time,
        seconds=row.get(names.SECONDS, math.nan) - row.get(names.NO_WORK, 0.0),
        nodes=0, node_share={}, reward_by_agent={} if reward is None else {AGENT: reward},
        trees=0, flat=0, failed=0, differing=0, reshaped=0, answers={},
        flat_share=row.get(names.FLAT_SHARE, math.nan),
        cut_share=row.get(names.CUT_SHARE, math.nan),
    )  # fmt: skip


def _saved(monitor: Monitor) -> MonitorState:
    history = monitor.history
    return MonitorState(
        agents=history.agents, steps=list(history.steps),
        updates={name: list(some) for name, some in history.updates.items()},
        baselines=history.baselines, highest_rates=history.highest_rates,
        validations=list(history.validations),
        trees=[(tree, one) for tree, one in history.growing.items() if tree is not None],
        credited=history.credited, rewards=history.rewards,
        open=list(monitor.open.values()),
        calm=[(*key, count) for key, count in monitor.calm.items()],
    )  # fmt: skip


def _restore(monitor: Monitor, saved: MonitorState) -> None:
    history = monitor.history
    history.agents = saved.agents
    history.steps.extend(saved.steps)
    history.validations.extend(saved.validations)
    history.updates = {name: deque(some, KEPT) for name, some in saved.updates.items()}
    history.baselines, history.highest_rates = saved.baselines, saved.highest_rates
    history.growing = dict(saved.trees)
    history.credited, history.rewards = saved.credited, saved.rewards
    monitor.open = {(one.rule, one.agent): one for one in saved.open}
    monitor.calm = {(rule, agent): count for rule, agent, count in saved.calm}
