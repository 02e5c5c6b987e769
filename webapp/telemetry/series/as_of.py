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
SELECT search.name, search.id, (low - 1) * {FANOUT} + place, seq[place], step[place], time[place],
       tokens[place], nodes[place], value[place]
FROM search JOIN telemetry_block AS block ON block.metric_id = search.id AND block.index = low - 1,
     LATERAL (SELECT count(*)::int AS place FROM unnest(seq) AS told WHERE told <= %(until)s) AS one
WHERE low = high
ORDER BY search.id
"""
_TAKEN = """
SELECT DISTINCT ON (name) name, 0, count(*) OVER (PARTITION BY name), told, point.step, point.time,
       point.tokens, point.nodes, point.value
FROM telemetry_takenback AS taken, unnest(seq, step, time, tokens, nodes, value)
     AS point (told, step, time, tokens, nodes, value)
WHERE run_id = %(run)s AND taken_at > %(until)s AND told <= %(until)s
ORDER BY name, told DESC
"""


@dataclass(frozen=True, slots=True)
class Known:
    """A metric as of an event: the number of its points, and the newest of them."""

    name: str
    points: int
    seq: int
    step: int
    time: float
    tokens: int
    nodes: int
    value: float


def known_metrics(run: Run, until: int) -> list[Known]:
    """Returns the metrics of the run as of event `until`."""
    asked = {"run": run.pk, "name": None, "until": until}
    found: dict[str, Known] = {}
    with connection.cursor() as cursor:
        for query in (_STORED, _TAKEN):
            cursor.execute(query, asked)
            for name, _, *told in cursor.fetchall():
                # Discarded points had been recorded after the kept ones.
                before = found[name].points if name in found else 0
                found[name] = Known(name, before + told[0], *told[1:])
    return list(found.values())


def stored_until(metric: Metric, until: int) -> int:
    """Returns the number of the stored points that were recorded up to event `until`."""
    asked = {"run": metric.run_id, "name": metric.name, "until": until}
    with connection.cursor() as cursor:
        cursor.execute(_STORED, asked)
        found: tuple[Any, ...] | None = cursor.fetchone()
    return found[2] if found else 0


def metric_or_none(run: Run, name: str, until: int | None) -> Metric | None:
    """Returns the metric of this name, without stored points if all of them were discarded since;
    None if there is none."""
    found = Metric.objects.filter(run=run, name=name).first()
    if found is None and until is not None:
        taken = TakenBack.objects.filter(run=run, name=name, taken_at__gt=until)
        return Metric(run=run, name=name) if taken.exists() else None
    return found
