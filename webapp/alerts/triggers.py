"""Evaluation of rules in the transaction of what happened: a transition of a run, stored events.

Invariants: alerts, inbox notices and pending deliveries are written with the change itself, so none
is lost or doubled by a killed process; a fault in here is logged, and never undoes the change; what
was imported happened long ago, and is no occasion.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from engine.events.vocabulary import Event
from webapp.alerts import evaluation
from webapp.alerts.evaluation import RunFacts
from webapp.alerts.models import AlertRule, RuleKind
from webapp.alerts.notices import notify, notify_own_failure, rules_about
from webapp.alerts.thresholds import evaluate_metrics
from webapp.experiments.models import Run
from webapp.experiments.scheduling.states import ENDED
from webapp.experiments.services import run_changed
from webapp.experiments.tracked_runs import alerts_after
from webapp.telemetry.ingest.ingest import events_stored
from webapp.telemetry.series.metrics import KINDS as OF_METRICS

logger = logging.getLogger(__name__)

_ENDS = (RuleKind.RUN_ENDED, RuleKind.RUN_FAILED)


@receiver(run_changed)
def on_transition(run: Run, **_: Any) -> None:
    """Evaluates the rules about the end of runs."""
    if run.run_state in ENDED:
        _guarded(run, lambda: _evaluate_end(run))


@receiver(events_stored)
def on_events(run: Run, events: Sequence[Event], **_: Any) -> None:
    """Evaluates the rules about health and metrics, if the batch has any of those; a batch that no
    rule is about costs one query."""
    warnings = [event for event in events if event.kind == "health"]
    kinds = [RuleKind.HEALTH] if warnings else []
    kinds += [RuleKind.METRIC] if any(event.kind in OF_METRICS for event in events) else []
    if kinds and (rules := list(rules_about(run, *kinds))):
        _guarded(run, lambda: _evaluate_events(rules, run, warnings))


def _guarded(run: Run, evaluate: Callable[[], None]) -> None:
    try:
        with transaction.atomic():
            evaluate()
    except Exception:
        logger.exception("alerts of run %s were not evaluated", run.pk)


def _evaluate_end(run: Run) -> None:
    at = run.finished_at.timestamp()
    if at <= alerts_after(run):
        return
    facts = RunFacts(str(run), run.run_state, run.step, run.error, at)
    for rule in rules_about(run, *_ENDS):
        failures_only = rule.kind == RuleKind.RUN_FAILED
        if occasion := evaluation.ended(facts, failures_only=failures_only):
            notify(rule, occasion, run)
    if occasion := evaluation.ended(facts, failures_only=True):
        notify_own_failure(run, occasion)


def _evaluate_events(rules: list[AlertRule], run: Run, warnings: list[Event]) -> None:
    warnings = [event for event in warnings if event.time > alerts_after(run)]
    for rule in (one for one in rules if one.kind == RuleKind.HEALTH):
        _evaluate_warnings(rule, run, warnings)
    if metrics := [one for one in rules if one.kind == RuleKind.METRIC]:
        evaluate_metrics(metrics, run)


def _evaluate_warnings(rule: AlertRule, run: Run, warnings: list[Event]) -> None:
    for event in warnings:
        occasion = evaluation.warned(rule.health, str(run), event.payload, event.time)
        if occasion:
            notify(rule, occasion, run)
