"""Monitor of a run: which health warnings are open, as a function of the events of its log.

A warning opens at the first step whose end a rule finds something, and closes when the rule has
found nothing for `CALM` steps. Invariants: a rule has at most one open warning per agent; what is
open is what the log says (its `health` events), so that a monitor of a log that a resume has cut
goes on where the log does and repeats nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from engine.events.states import HealthState
from engine.events.vocabulary import Event, HealthChanged
from engine.health import RULES
from engine.health.history import History
from engine.health.rule import Finding, Rule
from engine.health.setup import Setup

CALM = 10
"""Steps without a finding after which a warning closes: values near a threshold do not flicker."""

Key = tuple[str, str]
"""Rule and agent."""


class Monitor:
    """Fold of a log, and a watcher of it (`engine.events.watched_log`)."""

    def __init__(
        self,
        setup: Setup | None = None,
        rules: Mapping[str, Rule] = RULES,
        history: History | None = None,
    ):
        self.history = history or History(setup)
        self._rules = dict(rules)
        self.open: dict[Key, HealthChanged] = {}
        """Open warnings."""
        self.calm: dict[Key, int] = {}
        """Steps without a finding, by open warning."""

    def apply(self, event: Event) -> None:
        """Folds one event of the log."""
        if event.kind == "health":
            self._changed(event)
        else:
            self.history.apply(event)

    def judges(self, rule: str) -> bool:
        """Returns whether it has a rule of this name."""
        return rule in self._rules

    def drop(self, rules: Iterable[str]) -> None:
        """Takes rules and their open warnings away; another monitor has them from here on."""
        for name in rules:
            self._rules.pop(name, None)
            for key in [key for key in self.open if key[0] == name]:
                del self.open[key]
                self.calm.pop(key, None)

    def after_step(self) -> list[HealthChanged]:
        """Returns the warnings that open and close with the step that has ended; called once per
        step. They take effect when they are applied, as events."""
        findings = dict(self._findings())
        for key in self.open:
            self.calm[key] = 0 if key in findings else self.calm.get(key, 0) + 1
        closing = [key for key in self.open if self.calm[key] >= CALM]
        opening = [key for key in findings if key not in self.open]
        return [*map(self._closed, closing), *(self._opened(key, findings[key]) for key in opening)]

    def _findings(self) -> Iterator[tuple[Key, Finding]]:
        for name, rule in list(self._rules.items()):
            try:
                found = list(rule.find(self.history))
            except Exception:  # a warning is never worth the run
                logging.getLogger(__name__).exception("health rule %s fails; it is off", name)
                del self._rules[name]
                continue
            yield from (((name, finding.agent), finding) for finding in found)

    def _opened(self, key: Key, finding: Finding) -> HealthChanged:
        rule = self._rules[key[0]]
        return HealthChanged(
            rule=key[0],
            state=HealthState.OPENED,
            step=self._step(),
            title=rule.TITLE,
            seen=finding.seen,
            since=finding.since,
            since_time=self.history.time_of(finding.since),
            agent=finding.agent,
            advice=rule.ADVICE,
            figures=finding.figures,
        )

    def _closed(self, key: Key) -> HealthChanged:
        opened = self.open[key]
        return HealthChanged(
            rule=opened.rule,
            state=HealthState.CLOSED,
            step=self._step(),
            title=opened.title,
            seen=f"Not seen in the last {CALM} steps.",
            since=opened.since,
            since_time=opened.since_time,
            agent=opened.agent,
        )

    def _step(self) -> int:
        return self.history.steps[-1].step

    def _changed(self, event: Event) -> None:
        if not isinstance(change := event.typed(), HealthChanged):
            return
        key = change.rule, change.agent
        self.calm.pop(key, None)
        if change.state is HealthState.OPENED:
            self.open[key] = change
        else:
            self.open.pop(key, None)
