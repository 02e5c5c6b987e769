"""Scene of ten thousand runs in a database, and the queries that opening them costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.recipes import load_recipe
from webapp.accounts.models import Scope, User
from webapp.experiments.models import Experiment, Run
from webapp.projects.models import Project
from webapp.projects.services import create_project, create_workspace
from webapp.tokens.services import create_token

CHUNK = 1000


@dataclass(frozen=True)
class Scene:
    """The user and token of the requests, and the projects of the runs."""

    user: User
    token: str
    project: int
    listed_project: int

    def queries(self, busiest: str) -> dict[str, Any]:
        """Returns `queries`, their number by request, and `max_queries`."""
        client = Client(SERVER_NAME="localhost", raise_request_exception=True)
        client.force_login(self.user)
        rest = "/api/v1/runs"
        addresses = {
            "list": rest,
            "filter": f"{rest}?state=finished&name=sweep+9&project={self.project}",
            "open": f"{rest}/{busiest}",
            "metrics": f"{rest}/{busiest}/metrics?limit=200",
            "series": f"{rest}/{busiest}/metrics/phase.m20",
            "page_of_runs": "/",
            "page_of_run": f"/runs/{busiest}/",
        }
        counts = {}
        for name, address in addresses.items():
            with CaptureQueriesContext(connection) as captured:
                response = client.get(address)
            assert response.status_code == 200, (name, response.status_code)
            counts[name] = len(captured)
        return {"queries": counts, "max_queries": max(counts.values())}


def make_scene(runs: int, listed: int) -> Scene:
    """Creates one workspace with a project of `runs` runs and one of `listed`."""
    user = User.objects.create_user("bench")
    workspace = create_workspace("Bench", "bench", user)
    large, small = (create_project(workspace, name, name, created_by=user) for name in "ab")
    for project, number in ((large, runs), (small, listed)):
        for first in range(0, number, CHUNK):
            _make_runs(project, user, first, min(CHUNK, number - first))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    scopes = [Scope.RUNS_WRITE, Scope.TELEMETRY_WRITE]
    token = create_token(user, "bench", scopes, workspace, timedelta(days=1))
    return Scene(user, token, large.pk, small.pk)


def _make_runs(project: Project, user: User, first: int, number: int) -> None:
    config = load_recipe("mars2", {}).model_dump(mode="json")
    result = {"reward": 0.5, "solved": 0.75}
    experiments = Experiment.objects.bulk_create(
        Experiment(project=project, name=f"Sweep {first + index}", created_by=user, config={})
        for index in range(number)
    )
    fields = {"config": config, "result": result, "step": 40, "steps": 40, "state": "finished"}
    Run.objects.bulk_create(
        Run(experiment=experiment, number=1, seed=first + index, created_by=user, **fields)
        for index, experiment in enumerate(experiments)
    )
