"""Who is answered what at every address of the site: one row for each of its methods.

People: Alice (owner), Mia (maintainer), Bob (member), Vera (may only look), Charlie (a stranger)
and nobody (not signed in). Whatever a row does not name as a method is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from webapp.accounts.models import Scope

EVERYBODY = ("alice", "mia", "bob", "vera", "charlie", "nobody")

Answers = tuple[int, int, int, int, int, int]
OPEN: Answers = (200,) * 6
PAGE: Answers = (200, 200, 200, 200, 200, 302)
"""What shows each their own; the others are sent to sign in."""
TEAM_PAGE: Answers = (200, 200, 200, 200, 404, 302)
"""What lies in a workspace: to a stranger it does not exist."""
TEAM_FORM: Answers = (302, 302, 302, 302, 404, 302)
MEMBER_FORM: Answers = (302, 302, 302, 403, 404, 302)
MAINTAINER_FORM: Answers = (302, 302, 403, 403, 404, 302)
OWNER_FORM: Answers = (302, 403, 403, 403, 404, 302)
REST: Answers = (200, 200, 200, 200, 200, 401)
TEAM_REST: Answers = (200, 200, 200, 200, 404, 401)
MEMBER_REST: Answers = (200, 200, 200, 403, 404, 401)

READ = frozenset({Scope.RUNS_READ, Scope.RUNS_WRITE, Scope.ADMIN})
OPERATE = frozenset({Scope.RUNS_WRITE, Scope.ADMIN})


@dataclass(frozen=True)
class Row:
    name: str
    method: str
    answers: Answers
    body: dict[str, Any] | Callable[[Any], dict[str, Any]] = field(default_factory=dict)
    """What is sent, or what makes it of the cast."""
    scopes: frozenset[Scope] = frozenset()
    """Of REST: a token of Alice with any one of these is answered as she is; with none, 403."""


def _new_run(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "recipe": "mars2"}


def _new_token(cast: Any) -> dict[str, Any]:
    place = f"workspace-{cast.project.workspace_id}"
    return {"name": "robot", "place": place, "scopes": ["runs:read"], "days": 30}


def _marked(cast: Any) -> dict[str, Any]:
    run = cast.project.experiments.get().runs.get()
    return {"run": [str(run.pk)], "do": "star"}


ROWS = (
    Row("healthz", "get", OPEN),
    Row("sign-in", "get", OPEN),
    Row("sign-in", "post", OPEN),  # the form again, with what is wrong with it
    Row("sign-in-link", "get", (302,) * 6),
    Row("sign-out", "post", (302,) * 6),
    Row("tokens", "get", PAGE),
    Row("tokens", "post", (200, 200, 200, 200, 422, 302), _new_token),
    Row("revoke-token", "post", (302, 404, 404, 404, 404, 302)),
    Row("workspaces", "get", PAGE),
    Row("workspaces", "post", (302,) * 6, {"name": "Another"}),
    Row("workspace", "get", TEAM_PAGE),
    Row("add-project", "post", MEMBER_FORM, {"name": "Elms", "visibility": "private"}),
    Row("invite", "post", (200, 200, 403, 403, 404, 302), {"role": "viewer"}),
    Row("revoke-invitation", "post", MAINTAINER_FORM),
    Row("leave-workspace", "post", TEAM_FORM),
    Row("role", "post", MAINTAINER_FORM, {"role": "member"}),
    Row("remove-member", "post", MAINTAINER_FORM),
    Row("transfer-workspace", "post", OWNER_FORM),
    Row("project-visibility", "post", OWNER_FORM, {"visibility": "private"}),
    Row("invitation", "get", OPEN),
    Row("invitation", "post", (302, 302, 302, 302, 302, 422)),
    Row("runs", "get", PAGE),
    Row("launch", "get", PAGE),
    Row("launch", "post", (302, 302, 302, 422, 422, 302), _new_run),
    Row("run", "get", TEAM_PAGE),
    Row("stop-run", "post", MEMBER_FORM),
    Row("resume-run", "post", MEMBER_FORM),
    Row("mark-runs", "post", TEAM_FORM, _marked),
    Row("about-run", "get", (200, 200, 200, 403, 404, 302)),
    Row("about-run", "post", MEMBER_FORM, {"tags": "baseline", "notes": "**good**"}),
    Row("charts", "get", PAGE),
    Row("models", "get", PAGE),
    Row("model", "get", TEAM_PAGE),
    Row("datasets", "get", PAGE),
    Row("api-1:api-root", "get", (404,) * 6),
    Row("api-1:openapi-json", "get", OPEN),
    Row("api-1:list_runs", "get", REST, scopes=READ),
    Row("api-1:create_run", "post", (201, 201, 201, 403, 404, 401), _new_run, OPERATE),
    Row("api-1:get_run", "get", TEAM_REST, scopes=READ),
    Row("api-1:mark_run", "patch", MEMBER_REST, {"tags": ["baseline"]}, OPERATE),
    Row("api-1:stop_run", "post", MEMBER_REST, scopes=OPERATE),
    Row("api-1:resume_run", "post", (409, 409, 409, 403, 404, 401), scopes=OPERATE),
    Row("api-1:get_state", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_events", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_folded", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_moments", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_tree", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_node", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_metrics", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_metric", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_points", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_recipes", "get", REST, scopes=READ),
    Row("api-1:list_models", "get", REST, scopes=READ),
    Row("api-1:list_datasets", "get", REST, scopes=READ),
    Row("api-1:list_workspaces", "get", REST, scopes=READ),
    Row("api-1:list_projects", "get", REST, scopes=READ),
)

ANY_METHOD = {"api-1:api-root", "api-1:openapi-json"}
"""Ninja's own, which change nothing and ask for no method."""

IN_A_PROJECT = {
    "run", "about-run", "mark-runs", "stop-run", "resume-run", "model", "project-visibility",
    "api-1:get_run", "api-1:stop_run", "api-1:resume_run", "api-1:get_state", "api-1:get_events",
    "api-1:get_folded", "api-1:get_moments", "api-1:get_tree", "api-1:get_node",
    "api-1:create_run", "api-1:mark_run", "api-1:list_metrics", "api-1:get_metric",
    "api-1:list_points",
}  # fmt: skip
"""What does not exist for those who may not see its project, members or not."""
