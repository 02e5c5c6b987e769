"""Thresholds of metrics: the points that a rule has not evaluated yet, read and folded.

Invariants: the caller holds the run's row lock, so no point is evaluated twice; points that a
resumed run discarded are followed by those of the repeated steps; points from before the rule was
made, or changed, count for nothing, nor do those that were imported.
"""

from __future__ import annotations

from collections.abc import Sequence

from webapp.alerts.evaluation import Point, Progress, fold_points
from webapp.alerts.models import AlertRule, RuleState
from webapp.alerts.notices import notify
from webapp.experiments.models import Run
from webapp.experiments.tracked_runs import alerts_after
from webapp.telemetry.models import Block, Clock, Metric
from webapp.telemetry.series.packing import FANOUT

EACH_AGENT = "*"


def series_of(rule: AlertRule, agents: Sequence[str]) -> list[str]:
    """The names of the series that the rule is about in a run of these agents."""
    if rule.agent == EACH_AGENT:
        return [f"{rule.metric}.{agent}" for agent in agents]
    return [rule.series]


def evaluate_metrics(rules: Sequence[AlertRule], run: Run) -> None:
    """Evaluates the new points of the series that the rules name."""
    agents = [one.get("name", "") for one in run.config.get("agents", ())]
    series_of_rules = {rule.pk: series_of(rule, agents) for rule in rules}
    names = {name for series in series_of_rules.values() for name in series}
    metrics = {one.name: one for one in Metric.objects.filter(run=run, name__in=names)}
    if not metrics:
        return
    origin = Clock.objects.values_list("origin", flat=True).get(pk=run.pk)
    for rule in rules:
        for name in series_of_rules[rule.pk]:
            if name in metrics:
                _evaluate(rule, run, metrics[name], origin)


def _evaluate(rule: AlertRule, run: Run, metric: Metric, origin: float) -> None:
    state, _ = RuleState.objects.get_or_create(rule=rule, run=run, subject=metric.name)
    rows = _points(metric, state.seen)
    if not rows:
        return
    made = (rule.changed or rule.created).timestamp()
    imported = alerts_after(run)
    points = [Point(step, origin + time, value) for _, step, time, value in rows]
    progress, occasions = fold_points(
        rule,
        str(run),
        metric.name,
        Progress(state.beyond, state.since, state.fired),
        [one for one in points if one.time >= made and one.time > imported],
    )
    state.seen = rows[-1][0]
    state.beyond, state.since, state.fired = progress.beyond, progress.since, progress.fired
    state.save()
    for occasion in occasions:
        notify(rule, occasion, run)


Row = tuple[int, int, float, float]
"""Seq, step, seconds since the first event, value."""


def _points(metric: Metric, after: int) -> list[Row]:
    """The points of events after the seq `after`, in order."""
    rows: list[Row] = []
    for block in _blocks(metric, after):
        points = zip(block.seq, block.step, block.time, block.value, strict=True)
        rows += [row for row in points if row[0] > after]
    return rows


def _blocks(metric: Metric, after: int) -> list[Block]:
    """The blocks with those points: mostly the newest alone, whatever the length of the series."""
    of_metric = Block.objects.filter(metric=metric.pk)
    if after == 0:
        return list(of_metric.order_by("index"))
    blocks: list[Block] = []
    for index in range((metric.points - 1) // FANOUT, -1, -1):
        blocks.insert(0, of_metric.get(index=index))
        if blocks[0].seq[0] <= after:
            break
    return blocks
