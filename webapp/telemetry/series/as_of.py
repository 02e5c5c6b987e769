"""Metrics as of an earlier event of the log.

Invariant: at event S they hold the points recorded up to S and not discarded up to S. The seq of
stored points grows with their position, so those up to S are a metric's first ones; points
discarded after S are in `TakenBack`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from webapp.experiments.models import Run
from webapp.telemetry.models import Metric, TakenBack
from webapp.telemetry.series.packing import FANOUT

# Of each metric `low` becomes the number of blocks that begin at `until` or before.
_STORED = f"""
WITH RECURSIVE search AS (
    SELECT id, name, 0::bigint AS low, (points + {FANOUT - 1}) / {FANOUT} AS high
    FROM telemetry_metric WHERE run_id = %(run)s AND (%(name)s::text IS NULL OR name = %(name)s)
  UNION ALL
    SELECT search.id, search.name,
           CASE WHEN block.seq[1] <= %(until)s THEN (low + high) / 2 + 1 ELSE low END,
           CASE WHEN block.seq[1] <= %(until)s THEN high ELSE (low + high) / 2 END
    FROM search JOIN telemetry_block AS block
      ON block.metric_id = search.id AND block.index = (low + high) / 2
    WHERE low < high
)
SELECT search.name, search.id, (low - 1) * {FANOUT} + at, seq[at], step[at], time[at],
       tokens[at], nodes[at], value[at]
FROM search JOIN telemetry_block AS block ON block.metric_id = search.id AND block.index = low - 1,
     LATERAL (
         SELECT count(*)::int AS at FROM unnest(seq) AS recorded WHERE recorded <= %(until)s
     ) AS newest
WHERE low = high
ORDER BY search.id
"""
_TAKEN = """
SELECT DISTINCT ON (name) name, 0, count(*) OVER (PARTITION BY name), recorded, point.step,
       point.time, point.tokens, point.nodes, point.value
FROM telemetry_takenback AS taken, unnest(seq, step, time, tokens, nodes, value)
     AS point (recorded, step, time, tokens, nodes, value)
WHERE run_id = %(run)s AND taken_at > %(until)s AND recorded <= %(until)s
ORDER BY name, recorded DESC
"""


@dataclass(frozen=True, slots=True)
class MetricAsOf:
    """A metric as of an event: the number of its points, and the newest of them."""

    name: str
    points: int
    seq: int
    step: int
    time: float
    tokens: int
    nodes: int
    value: float


def metrics_as_of(run: Run, until: int) -> list[MetricAsOf]:
    """Returns the metrics of the run as of event `until`."""
    values = {"run": run.pk, "name": None, "until": until}
    by_name: dict[str, MetricAsOf] = {}
    with connection.cursor() as cursor:
        for query in (_STORED, _TAKEN):
            cursor.execute(query, values)
            for name, _, *newest in cursor.fetchall():
                # Discarded points had been recorded after the kept ones.
                before = by_name[name].points if name in by_name else 0
                by_name[name] = MetricAsOf(name, before + newest[0], *newest[1:])
    return list(by_name.values())


def stored_until(metric: Metric, until: int) -> int:
    """Returns the number of the stored points that were recorded up to event `until`."""
    values = {"run": metric.run_id, "name": metric.name, "until": until}
    with connection.cursor() as cursor:
        cursor.execute(_STORED, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row[2] if row else 0


def metric_or_none(run: Run, name: str, until: int | None) -> Metric | None:
    """Returns the metric of this name, without stored points if all of them were discarded since;
    None if there is none."""
    metric = Metric.objects.filter(run=run, name=name).first()
    if metric is None and until is not None:
        taken = TakenBack.objects.filter(run=run, name=name, taken_at__gt=until)
        return Metric(run=run, name=name) if taken.exists() else None
    return metric
