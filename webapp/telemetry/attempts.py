"""Verified attempts at the problems of a dataset version, counted in the logs of its runs.

Invariant: only verified programs count.
"""

from __future__ import annotations

from django.db import connection

from webapp.accounts.models import User
from webapp.datasets.difficulty import Attempts
from webapp.datasets.models import DatasetVersion
from webapp.experiments.models import Run

MOST_RUNS = 20
"""Newest runs that are counted; more would change little and take the page longer."""

_COUNTS = """
SELECT opened.payload->>'problem', count(*),
       count(*) FILTER (WHERE closed.payload->>'verdict' = 'passed')
FROM telemetry_event opened
JOIN telemetry_event closed
  ON closed.run_id = opened.run_id AND closed.tree = opened.tree AND closed.kind = 'node.close'
WHERE opened.run_id = ANY(%s) AND opened.kind = 'tree.open'
  AND closed.payload->>'verdict' NOT IN ('no_program', 'sandbox_failure')
GROUP BY 1
"""


def attempts_on(version: DatasetVersion, user: User) -> Attempts:
    """Counts the attempts of the newest runs on this version that `user` may see."""
    visible = Run.objects.visible_to(user).filter(dataset_version=version).order_by("-created")
    runs = list(visible.values_list("pk", flat=True)[:MOST_RUNS])
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [runs])
        counts = {problem: (tried, passed) for problem, tried, passed in cursor.fetchall()}
    return Attempts(len(runs), counts)
