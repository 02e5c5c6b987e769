"""Difficulty of a version's problems for the runs that were trained on it.

Invariant: only verified programs count; a problem is identified by its id in the version.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from engine.problems.difficulty import difficulties
from webapp.accounts.models import User
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


@dataclass(frozen=True, slots=True)
class RatedProblem:
    """Difficulty of one problem that was tried."""

    number: int
    problem: str
    tried: int
    passed: int
    difficulty: float


@dataclass(frozen=True, slots=True)
class VersionDifficulties:
    """Difficulties of the tried problems of a version, hardest first."""

    runs: int
    problems: list[RatedProblem]


def problem_difficulties(version: DatasetVersion, user: User) -> VersionDifficulties:
    """Returns the difficulties from the runs on this version that `user` may see."""
    visible = Run.objects.visible_to(user).filter(dataset_version=version).order_by("-created")
    runs = list(visible.values_list("pk", flat=True)[:MOST_RUNS])
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [runs])
        counts = {problem: (tried, passed) for problem, tried, passed in cursor.fetchall()}
    problems = version.problems.filter(problem__in=list(counts)).order_by("number")
    rows = list(problems.values_list("number", "problem"))
    tried = [counts[problem][0] for _, problem in rows]
    passed = [counts[problem][1] for _, problem in rows]
    counted = zip(rows, tried, passed, difficulties(passed, tried) if rows else [], strict=True)
    rated = [
        RatedProblem(number, problem, n, c, round(d, 4)) for (number, problem), n, c, d in counted
    ]
    return VersionDifficulties(len(runs), sorted(rated, key=lambda x: (-x.difficulty, x.number)))
