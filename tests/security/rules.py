"""The response to each caller at every address of the site: one row per method.

People: Alice (owner), Mia (maintainer), Bob (member), Vera (viewer), Charlie (a stranger) and
nobody (not signed in). A method that has no row is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.builders import a_run
from tests.helpers.datasets import a_finished_upload, stored_version
from tests.helpers.workspace_zips import a_zip_upload
from webapp.accounts.models import Scope
from webapp.config.parents import PAGES, name_of
from webapp.datasets.models import DatasetVersion
from webapp.experiments.models import Run
from webapp.registry.models import ModelVersion

EVERYBODY = ("alice", "mia", "bob", "vera", "charlie", "nobody")

Answers = tuple[int, int, int, int, int, int]
OPEN: Answers = (200,) * 6
ENTRANCE: Answers = (302, 302, 302, 302, 302, 200)
"""A signed-in user is redirected."""
NOWHERE: Answers = (404, 404, 404, 404, 404, 302)
REFUSED: Answers = (403, 403, 403, 403, 403, 302)
PAGE: Answers = (200, 200, 200, 200, 200, 302)
"""A page of the user's own data; anonymous visitors are redirected to sign in."""
TEAM_PAGE: Answers = (200, 200, 200, 200, 404, 302)
"""Belongs to a workspace: for a stranger it does not exist."""
TEAM_FORM: Answers = (302, 302, 302, 302, 404, 302)
MEMBER_FORM: Answers = (302, 302, 302, 403, 404, 302)
MAINTAINER_FORM: Answers = (302, 302, 403, 403, 404, 302)
OWNER_FORM: Answers = (302, 403, 403, 403, 404, 302)
REST: Answers = (200, 200, 200, 200, 200, 401)
TEAM_REST: Answers = (200, 200, 200, 200, 404, 401)
MEMBER_DELETE: Answers = (204, 204, 204, 403, 404, 401)
MEMBER_ACCEPTED: Answers = (202, 202, 202, 403, 404, 401)
MEMBER_REST: Answers = (200, 200, 200, 403, 404, 401)
MAINTAINER_REST: Answers = (200, 200, 403, 403, 404, 401)

ADD_DATASETS = frozenset({Scope.DATASETS_WRITE, Scope.ADMIN})
ADD_MODELS = frozenset({Scope.REGISTRY_WRITE, Scope.ADMIN})
PROMOTE = frozenset({Scope.REGISTRY_PROMOTE, Scope.ADMIN})
UPLOAD = ADD_DATASETS | {Scope.REGISTRY_WRITE}
READ = frozenset({Scope.RUNS_READ, Scope.RUNS_WRITE, Scope.ADMIN})
ASK_UPLOAD = READ | UPLOAD
OPERATE = frozenset({Scope.RUNS_WRITE, Scope.ADMIN})


REPORT = frozenset({Scope.TELEMETRY_WRITE, Scope.ADMIN})


NO_TOKEN: frozenset[Scope | None] = frozenset({None})
"""Open to a signed-in person and to no token at all."""
PERSON_REST: Answers = (200, 200, 200, 200, 200, 401)
MANAGE = frozenset({Scope.ADMIN})


@dataclass(frozen=True)
class Row:
    name: str
    method: str
    answers: Answers
    body: dict[str, Any] | Callable[[Any], dict[str, Any]] = field(default_factory=dict)
    """The request's data, or a function that builds it from the cast."""
    scopes: frozenset[Scope] = frozenset()
    """For REST: a token of Alice with any one of these scopes gets her response; any other, 403."""


def _new_run(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "recipe": "mars2"}


def _new_export(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "table": "runs", "format": "csv"}


def _two_compared(cast: Any) -> dict[str, Any]:
    return {"run": [str(a_run(cast).pk) for _ in range(2)]}


def _shared_comparison(cast: Any) -> dict[str, Any]:
    return {**_two_compared(cast), "days": 7}


def _tracked_run(cast: Any) -> dict[str, Any]:
    session = str(uuid.uuid4())
    return {"project": cast.project.pk, "id": session, "session": session}


def _rollouts(cast: Any) -> dict[str, Any]:
    rollout = {"problem": "2 + 2?", "text": "4", "reward": 1.0}
    return {"project": cast.project.pk, "rollouts": [rollout]}


def _compared(cast: Any) -> dict[str, Any]:
    runs = Run.objects.filter(experiment__project=cast.project)
    return {"run": [*runs.values_list("pk", flat=True), *runs.values_list("pk", flat=True)]}


def _new_model(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "name": "elm"}


def _new_import(cast: Any) -> dict[str, Any]:
    return {"package": "smollm2"}


def _pretrained_form(cast: Any) -> dict[str, Any]:
    return {"package": "smollm2", "project": cast.project.pk, "name": "smol"}


def _versions(cast: Any) -> dict[str, Any]:
    """Two versions of the project, or ids that do not exist."""
    result = ModelVersion.objects.filter(model__project=cast.project).order_by("number")
    return {"version": list(result.values_list("pk", flat=True))}


def _new_evaluation(cast: Any) -> dict[str, Any]:
    return {"dataset_version": _measured_on(cast).pk, "problems": 3}


def _evaluation_form(cast: Any) -> dict[str, Any]:
    return {"dataset": _measured_on(cast).pk, "problems": 3, "samples": 1, "nodes": 1}


def _measured_on(cast: Any) -> DatasetVersion:
    return DatasetVersion.objects.get(dataset__project=cast.project, dataset__name="measured")


_NO_UPLOADS = {"uploads": ["3fa85f64-5717-4562-b3fc-2c963f66afa6"]}
_PROMOTION = {"alias": "champion", "version": 2, "reason": "It is better."}


def _other_version(cast: Any) -> dict[str, Any]:
    return {"other": stored_version(cast).pk, "threshold": 0.5}


def _new_dataset(cast: Any) -> dict[str, Any]:
    upload = a_finished_upload(cast, cast.alice)
    return {"project": cast.project.pk, "name": "new", "uploads": [str(upload.pk)]}


def _new_workspace_import(cast: Any) -> dict[str, Any]:
    upload = a_zip_upload(cast.alice, b"PK another")
    return {"upload": str(upload.pk), "into": cast.project.workspace.slug}


def _new_upload(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "kind": "dataset", "name": "a.jsonl", "size": 3}


def _new_rest_token(cast: Any) -> dict[str, Any]:
    return {"name": "robot", "workspace": cast.project.workspace_id, "scopes": ["runs:read"]}


def _of_project(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk}


def _new_rule(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "shared": True, "kind": "run-failed"}


def _rule_form(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "kind": "run-failed", "inbox": "on"}


def _new_channel(cast: Any) -> dict[str, Any]:
    hook = {"kind": "webhook", "name": "pager", "url": "https://hooks.example/x"}
    return {"project": cast.project.pk, **hook}


def _about(cast: Any) -> dict[str, Any]:
    return {"run": [str(one) for one in _compared(cast)["run"][:1]]}


def _new_comment(cast: Any) -> dict[str, Any]:
    return {**_about(cast), "text": "It learns."}


def _new_report(cast: Any) -> dict[str, Any]:
    return {"project": cast.project.pk, "title": "Wider trees", "text": "They *help*."}


def _planted_tree(cast: Any) -> dict[str, Any]:
    run = Run.objects.get(experiment__project=cast.project, events__tree=7, events__node=None)
    return {"tree": f"{run.pk}:7"}


def _new_token(cast: Any) -> dict[str, Any]:
    place = f"workspace-{cast.project.workspace_id}"
    return {"name": "robot", "resource": place, "scopes": ["runs:read"], "days": 30}


def _marked(cast: Any) -> dict[str, Any]:
    run = cast.project.experiments.get(name="Shade").runs.get()
    return {"run": [str(run.pk)], "do": "star"}


def _searched(cast: Any) -> dict[str, Any]:
    test = {"arguments": [1], "expected": 1}
    problem = {"id": "same", "statement": "Return x.", "entry_point": "solve"}
    return {
        "team": ["starter:oak"],
        "problem": {**problem, "public_tests": [test], "private_tests": [test]},
    }


def _new_search(cast: Any) -> dict[str, Any]:
    return {
        "project": cast.project.pk,
        "team": "starter:oak",
        "source": "paste",
        "statement": "Return x.",
        "entry_point": "solve",
        "public_tests": "assert solve(1) == 1",
    }


def _both(name: str, answers: Answers) -> tuple[Row, Row]:
    return Row(name, "get", answers), Row(name, "post", answers)


ROWS = (
    Row("healthz", "get", OPEN),
    Row("readyz", "get", OPEN),
    Row("metrics", "get", (404,) * 6),  # for the holder of GROVE_METRICS_TOKEN alone
    Row("account_login", "get", ENTRANCE),
    Row("account_login", "post", ENTRANCE),  # the form again, with its errors
    Row("mfa_authenticate", "get", (302,) * 6),
    Row("mfa_authenticate", "post", (302,) * 6),
    Row("mfa_login_webauthn", "get", (302,) * 6),  # only scripts get the challenge
    Row("mfa_login_webauthn", "post", (302,) * 6),
    Row("sign-in-link", "get", (302,) * 6),
    Row("account_logout", "post", (302,) * 6),
    Row("account_signup", "get", ENTRANCE),  # closed without an invitation
    Row("account_signup", "post", ENTRANCE),
    Row("account_inactive", "get", OPEN),
    Row("mfa_index", "get", PAGE),
    # The cast has neither a password nor a second factor to confirm.
    *_both("account_reauthenticate", REFUSED),
    *_both("mfa_reauthenticate", REFUSED),
    *_both("mfa_reauthenticate_webauthn", REFUSED),
    *_both("account_change_password", (302,) * 6),  # the cast has none yet
    *_both("account_set_password", PAGE),
    *_both("mfa_activate_totp", PAGE),
    *_both("mfa_deactivate_totp", NOWHERE),  # no one has an authenticator app
    Row("mfa_view_recovery_codes", "get", NOWHERE),
    Row("mfa_download_recovery_codes", "get", NOWHERE),
    *_both("mfa_generate_recovery_codes", PAGE),
    Row("mfa_list_webauthn", "get", PAGE),
    *_both("mfa_add_webauthn", PAGE),
    *_both("mfa_edit_webauthn", NOWHERE),  # it belongs to another user
    *_both("mfa_remove_webauthn", NOWHERE),
    # Without mail and a provider, none of these exists.
    *_both("account_reset_password", (404,) * 6),
    Row("account_reset_password_done", "get", (404,) * 6),
    *_both("account_reset_password_from_key", (404,) * 6),
    Row("account_reset_password_from_key_done", "get", (404,) * 6),
    *_both("account_email", NOWHERE),
    Row("account_email_verification_sent", "get", (404,) * 6),
    *_both("account_confirm_email", (404,) * 6),
    *_both("socialaccount_connections", NOWHERE),
    *_both("socialaccount_signup", (404,) * 6),
    Row("socialaccount_login_cancelled", "get", (404,) * 6),
    Row("socialaccount_login_error", "get", NOWHERE),
    *_both("openid_connect_login", (404,) * 6),
    Row("openid_connect_callback", "get", (404,) * 6),
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
    Row("close-workspace", "get", (200, 403, 403, 403, 404, 302)),
    Row("close-workspace", "post", (422, 403, 403, 403, 404, 302), {"name": "Trees"}),
    Row("export-workspace", "get", (200, 403, 403, 403, 404, 302)),
    Row("reports", "get", PAGE),
    Row("new-report", "get", PAGE),
    Row("new-report", "post", (302, 302, 302, 422, 422, 302), _new_report),
    Row("report", "get", TEAM_PAGE),
    Row("edit-report", "get", (200, 200, 200, 403, 404, 302)),
    Row("edit-report", "post", MEMBER_FORM, {"version": 1, "title": "So", "text": "So."}),
    Row("report-history", "get", TEAM_PAGE),
    Row("export-report", "get", TEAM_PAGE),
    Row("delete-report", "post", MAINTAINER_FORM),
    Row("report-shares", "get", TEAM_PAGE),
    Row("report-shares", "post", (200, 200, 200, 403, 404, 302), {"days": 7}),
    Row("revoke-report-share", "post", MEMBER_FORM),
    Row("shared-report", "get", OPEN),
    Row("api-1:list_reports", "get", REST, scopes=READ),
    Row("api-1:create_report", "post", (201, 201, 201, 403, 404, 401), _new_report, OPERATE),
    Row("api-1:get_report", "get", TEAM_REST, scopes=READ),
    Row("api-1:change_report", "patch", MEMBER_REST, {"version": 1, "text": "So."}, OPERATE),
    Row("api-1:delete_report", "delete", (204, 204, 403, 403, 404, 401), scopes=OPERATE),
    Row("api-1:list_report_versions", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_report_file", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_report_shares", "get", TEAM_REST, scopes=READ),
    Row("api-1:share_report", "post", (201, 201, 201, 403, 404, 401), {"days": 7}, OPERATE),
    Row("api-1:unshare_report", "delete", MEMBER_DELETE, scopes=OPERATE),
    Row("operations", "get", (200, 404, 404, 404, 404, 302)),  # Alice's is the first account
    Row("api-1:get_operations", "get", (200, 404, 404, 404, 404, 401), scopes=NO_TOKEN),
    Row("retention", "get", TEAM_PAGE),
    Row("retention", "post", OWNER_FORM, {"days": 90}),
    Row("audit", "get", (200, 403, 403, 403, 404, 302)),
    Row("audit-file", "get", (200, 403, 403, 403, 404, 302)),
    Row("project-visibility", "post", OWNER_FORM, {"visibility": "private"}),
    Row("invitation", "get", OPEN),
    Row("invitation", "post", (302,) * 6),
    Row("comments", "get", TEAM_PAGE, _about),
    Row("comments", "post", MEMBER_FORM, _new_comment),
    Row("edit-comment", "get", (200, 403, 403, 403, 404, 302)),
    Row("edit-comment", "post", OWNER_FORM, {"text": "So."}),
    Row("delete-comment", "post", MAINTAINER_FORM),
    Row("inbox", "get", PAGE),
    Row("read-inbox", "post", (302,) * 6),
    Row("open-notice", "post", (404, 404, 302, 404, 404, 302)),
    Row("notifications", "get", PAGE),
    Row("notifications", "post", (302,) * 6, {"own_failures": "on", "time_zone": "UTC"}),
    Row("test-notifications", "post", (302,) * 6),
    Row("add-alert-rule", "post", MAINTAINER_FORM, _rule_form),
    Row("change-alert-rule", "get", (200, 200, 403, 403, 404, 302)),
    Row("change-alert-rule", "post", MAINTAINER_FORM, _rule_form),
    Row("delete-alert-rule", "post", MAINTAINER_FORM),
    Row("add-alert-channel", "post", (200, 200, 403, 403, 404, 302), _new_channel),
    Row("change-alert-channel", "post", MAINTAINER_FORM, {"do": "enable"}),
    Row("project-alerts", "get", TEAM_PAGE),
    Row("mute-run", "post", TEAM_FORM),
    Row("workspace-imports", "get", PAGE),
    # An import is its creator's, Alice's.
    Row("confirm-workspace-import", "post", (302, 404, 404, 404, 404, 302)),
    Row("cancel-workspace-import", "post", (302, 404, 404, 404, 404, 302)),
    Row("retry-workspace-import", "post", (302, 404, 404, 404, 404, 302)),
    Row("runs", "get", PAGE),
    Row("compare", "get", PAGE),
    Row("launch", "get", PAGE),
    Row("launch", "post", (302, 302, 302, 422, 422, 302), _new_run),
    Row("check-launch", "post", (200, 200, 200, 200, 200, 302)),
    Row("run", "get", TEAM_PAGE),
    Row("compare-trees", "get", TEAM_PAGE, _planted_tree),
    Row("stop-run", "post", MEMBER_FORM),
    Row("resume-run", "post", MEMBER_FORM),
    Row("mark-runs", "post", TEAM_FORM, _marked),
    Row("about-run", "get", (200, 200, 200, 403, 404, 302)),
    Row("about-run", "post", MEMBER_FORM, {"tags": "baseline", "notes": "**good**"}),
    Row("kill-run", "post", MEMBER_FORM),
    Row("run-priority", "post", MEMBER_FORM, {"priority": 3}),
    Row("run-note", "post", MEMBER_FORM, {"text": "It learns."}),
    Row("charts", "get", PAGE),
    Row("log", "get", TEAM_PAGE),
    Row("shares", "get", TEAM_PAGE),
    Row("shares", "post", (200, 200, 200, 403, 404, 302), {"days": 7}),
    Row("revoke-share", "post", MEMBER_FORM),
    Row("comparison-shares", "get", TEAM_PAGE, _two_compared),
    Row("comparison-shares", "post", (200, 200, 200, 403, 404, 302), _shared_comparison),
    Row("revoke-comparison-share", "post", MEMBER_FORM),
    Row("shared-comparison", "get", OPEN),
    Row("api-1:list_comparison_shares", "get", TEAM_REST, _two_compared, READ),
    Row("api-1:share_comparison", "post", (201, 201, 201, 403, 404, 401), _two_compared, OPERATE),
    Row("api-1:unshare_comparison", "delete", (204, 204, 204, 403, 404, 401), scopes=OPERATE),
    Row("api-1:get_shared_comparison", "get", OPEN),
    Row("api-1:get_compared_metrics", "get", OPEN),
    Row("api-1:get_compared_metric", "get", OPEN),
    Row("shared", "get", OPEN),  # the secret in the address admits anyone who has it
    Row("exports", "get", PAGE),
    Row("exports", "post", (302, 302, 302, 302, 422, 302), _new_export),
    Row("remove-export", "post", MEMBER_FORM),
    Row("models", "get", PAGE),
    Row("model", "get", TEAM_PAGE),
    Row("new-model", "get", PAGE),
    Row("pretrained-models", "get", PAGE),
    Row("pretrained-models", "post", (302, 302, 302, 403, 422, 302), _pretrained_form),
    Row("cancel-model-import", "post", MEMBER_FORM),
    Row("retry-model-import", "post", MEMBER_FORM),
    Row("compare-versions", "get", TEAM_PAGE, _versions),
    Row("version", "get", TEAM_PAGE),
    Row("archive", "get", TEAM_FORM),  # its files were never listed; redirects to the version
    Row("version-notes", "post", MEMBER_FORM, {"notes": "**good**"}),
    Row("evaluate-version", "post", MEMBER_FORM, _evaluation_form),
    Row("delete-evaluation", "post", MAINTAINER_FORM),
    Row("delete-version", "post", MAINTAINER_FORM),
    Row("delete-model", "post", MAINTAINER_FORM),
    Row("promote", "post", MAINTAINER_FORM, _PROMOTION),
    Row("decide-promotion", "post", MAINTAINER_FORM, {"do": "approve"}),
    Row("register-checkpoint", "post", MEMBER_FORM, {"step": 3, "agent": "oak"}),
    Row("second-pair", "post", OWNER_FORM, {"second_pair": "on"}),
    Row("datasets", "get", PAGE),
    Row("searches", "get", PAGE),
    Row("new-search", "get", PAGE),
    Row("new-search", "post", (302, 302, 302, 422, 422, 302), _new_search),
    Row("check-search", "post", (200, 200, 200, 200, 200, 302)),
    Row("search-problems", "get", TEAM_PAGE),
    Row("dataset", "get", TEAM_PAGE),
    Row("dataset-version", "get", TEAM_PAGE),
    Row("dataset-problem", "get", TEAM_PAGE),
    Row("dataset-report", "get", TEAM_PAGE),
    Row("cancel-dataset-report", "post", MEMBER_FORM),
    Row("check-dataset", "post", MEMBER_FORM),
    Row("derive-dataset", "post", MEMBER_FORM, {"keep": "passed"}),
    Row("delete-dataset", "post", MEMBER_FORM),
    Row("compare-dataset", "post", MEMBER_FORM, _other_version),
    Row("reference", "get", OPEN),
    Row("api-1:api-root", "get", (404,) * 6),
    Row("api-1:openapi-json", "get", OPEN),
    Row("api-1:list_runs", "get", REST, scopes=READ),
    Row("api-1:create_run", "post", (201, 201, 201, 403, 404, 401), _new_run, OPERATE),
    Row(
        "api-1:create_experiment_of_runs", "post", (201, 201, 201, 403, 404, 401), _new_run, OPERATE
    ),
    Row("delete-run", "get", (200, 200, 403, 403, 404, 302)),
    Row("delete-run", "post", MAINTAINER_FORM),  # back to the page: the run is active
    Row("api-1:get_run_deletion", "get", MAINTAINER_REST, scopes=OPERATE),
    Row("api-1:delete_run", "delete", (409, 409, 403, 403, 404, 401), scopes=OPERATE),  # active
    Row("api-1:get_retention", "get", TEAM_REST, scopes=READ),
    Row("api-1:change_retention", "patch", (200, 403, 403, 403, 404, 401), {"days": 90}, MANAGE),
    Row("api-1:kill_run", "post", MEMBER_REST, scopes=OPERATE),
    Row("api-1:set_priority", "post", MEMBER_REST, {"priority": 3}, OPERATE),
    Row("api-1:write_note", "post", (201, 201, 201, 403, 404, 401), {"text": "Well."}, OPERATE),
    Row("api-1:get_actions", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_checkpoints", "get", TEAM_REST, scopes=READ),
    Row("api-1:clone_run", "post", (201, 201, 201, 403, 404, 401), scopes=OPERATE),
    Row("api-1:fork_run", "post", (409, 409, 409, 403, 404, 401), {"step": 3}, OPERATE),
    Row(
        "api-1:create_version_of_checkpoint",
        "post",
        (409, 409, 409, 403, 404, 401),
        {"agent": "oak"},
        ADD_MODELS,
    ),
    Row("api-1:compare_runs", "get", TEAM_REST, _compared, READ),
    Row("api-1:get_run", "get", TEAM_REST, scopes=READ),
    Row("api-1:mark_run", "patch", MEMBER_REST, {"tags": ["baseline"]}, OPERATE),
    Row("api-1:track_run", "post", MEMBER_REST, _tracked_run, OPERATE),
    Row("api-1:add_rollouts", "post", MEMBER_REST, _rollouts, OPERATE),
    Row("api-1:stop_run", "post", MEMBER_REST, scopes=OPERATE),
    Row("api-1:resume_run", "post", (409, 409, 409, 403, 404, 401), scopes=OPERATE),
    Row("api-1:get_state", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_events", "get", TEAM_REST, scopes=READ),
    Row("api-1:add_events", "post", (409, 409, 409, 403, 404, 401), {"events": []}, REPORT),
    Row("api-1:get_folded", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_moments", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_step_trees", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_tree", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_node", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_steps", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_logged", "get", TEAM_REST, {"kind": "texts", "name": "note"}, READ),
    Row("api-1:list_log_lines", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_metrics", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_metric", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_points", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_comments", "get", TEAM_REST, _about, READ),
    Row("api-1:create_comment", "post", (201, 201, 201, 403, 404, 401), _new_comment, OPERATE),
    Row("api-1:change_comment", "patch", (200, 403, 403, 403, 404, 401), {"text": "So."}, OPERATE),
    Row("api-1:delete_comment", "delete", (204, 204, 403, 403, 404, 401), scopes=OPERATE),
    Row("api-1:list_notices", "get", PERSON_REST, scopes=NO_TOKEN),
    Row("api-1:mark_notices_read", "post", (204,) * 5 + (401,), scopes=NO_TOKEN),
    Row("api-1:list_alerts", "get", MAINTAINER_REST, _of_project, MANAGE),
    Row("api-1:list_alert_rules", "get", TEAM_REST, _of_project, READ),
    Row("api-1:create_alert_rule", "post", (201, 201, 403, 403, 404, 401), _new_rule, MANAGE),
    Row("api-1:get_alert_rule", "get", TEAM_REST, scopes=READ),
    Row("api-1:change_alert_rule", "patch", MAINTAINER_REST, {"inbox": True}, MANAGE),
    Row("api-1:delete_alert_rule", "delete", (204, 204, 403, 403, 404, 401), scopes=MANAGE),
    Row("api-1:list_alert_channels", "get", MAINTAINER_REST, _of_project, MANAGE),
    Row("api-1:create_alert_channel", "post", (201, 201, 403, 403, 404, 401), _new_channel, MANAGE),
    Row("api-1:act_on_alert_channel", "post", MAINTAINER_REST, {"do": "rotate"}, MANAGE),
    Row("api-1:delete_alert_channel", "delete", (204, 204, 403, 403, 404, 401), scopes=MANAGE),
    Row("api-1:get_alert_preferences", "get", PERSON_REST, scopes=NO_TOKEN),
    Row("api-1:change_alert_preferences", "patch", PERSON_REST, {}, NO_TOKEN),
    Row("api-1:send_test_notification", "post", (201,) * 5 + (401,), scopes=NO_TOKEN),
    Row("api-1:mute_run", "post", TEAM_REST, {"muted": True}, NO_TOKEN),
    Row("api-1:list_shares", "get", TEAM_REST, scopes=READ),
    Row("api-1:create_share", "post", (201, 201, 201, 403, 404, 401), scopes=OPERATE),
    Row("api-1:revoke_share", "delete", (204, 204, 204, 403, 404, 401), scopes=OPERATE),
    Row("api-1:get_shared_state", "get", OPEN),
    Row("api-1:get_shared_moments", "get", OPEN),
    Row("api-1:get_shared_events", "get", OPEN),
    Row("api-1:get_shared_step", "get", OPEN),
    Row("api-1:get_shared_tree", "get", OPEN),
    Row("api-1:get_shared_node", "get", OPEN),
    Row("api-1:get_shared_metrics", "get", OPEN),
    Row("api-1:get_shared_metric", "get", OPEN),
    Row("api-1:list_recipes", "get", REST, scopes=READ),
    Row("api-1:list_presets", "get", REST, scopes=READ),
    Row("api-1:list_settings", "get", REST, scopes=READ),
    Row("api-1:list_searches", "get", TEAM_REST, scopes=READ),
    Row(
        "api-1:create_search_in_project",
        "post",
        (201, 201, 201, 403, 404, 401),
        _searched,
        OPERATE,
    ),
    Row("api-1:check_search_in_project", "post", MEMBER_REST, _searched, OPERATE),
    Row("api-1:list_search_members", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_search_problems", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_search", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_answer", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_models", "get", REST, scopes=READ),
    Row("api-1:create_model", "post", (201, 201, 201, 403, 404, 401), _new_model, ADD_MODELS),
    Row("api-1:list_pretrained_models", "get", REST, scopes=READ),
    Row("api-1:create_model_import", "post", MEMBER_ACCEPTED, _new_import, ADD_MODELS),
    Row("api-1:list_model_imports", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_model_import", "get", TEAM_REST, scopes=READ),
    Row("api-1:cancel_model_import", "post", MEMBER_REST, {}, ADD_MODELS),
    # It is not over.
    Row("api-1:retry_model_import", "post", (409, 409, 409, 403, 404, 401), {}, ADD_MODELS),
    Row("api-1:compare_versions", "get", TEAM_REST, _versions, READ),
    Row("api-1:get_model", "get", TEAM_REST, scopes=READ),
    Row("api-1:delete_model", "delete", (409, 409, 403, 403, 404, 401), scopes=ADD_MODELS),
    Row("api-1:list_versions", "get", TEAM_REST, scopes=READ),
    # No byte of the upload has arrived yet.
    Row("api-1:create_version", "post", (409, 409, 409, 403, 404, 401), _NO_UPLOADS, ADD_MODELS),
    Row("api-1:get_version", "get", TEAM_REST, scopes=READ),
    Row("api-1:change_version", "patch", MEMBER_REST, {"notes": "**good**"}, ADD_MODELS),
    Row("api-1:delete_version", "delete", (409, 409, 403, 403, 404, 401), scopes=ADD_MODELS),
    Row("api-1:get_card", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_archive", "get", (409, 409, 409, 409, 404, 401), scopes=READ),
    Row("api-1:list_promotions", "get", TEAM_REST, scopes=READ),
    Row("api-1:create_promotion", "post", (201, 201, 403, 403, 404, 401), _PROMOTION, PROMOTE),
    # Mia requested it, so she cannot approve it, but can withdraw it.
    Row("api-1:approve_promotion", "post", (200, 409, 403, 403, 404, 401), scopes=PROMOTE),
    Row("api-1:refuse_promotion", "post", (200, 200, 403, 403, 404, 401), scopes=PROMOTE),
    Row("api-1:list_model_evaluations", "get", TEAM_REST, scopes=READ),
    Row(
        "api-1:create_model_evaluation",
        "post",
        (201, 201, 201, 403, 404, 401),
        _new_evaluation,
        ADD_MODELS,
    ),
    Row("api-1:get_model_evaluation", "get", TEAM_REST, scopes=READ),
    Row(
        "api-1:delete_model_evaluation",
        "delete",
        (409, 409, 403, 403, 404, 401),
        scopes=ADD_MODELS,
    ),
    Row("api-1:get_second_pair", "get", TEAM_REST, scopes=READ),
    Row(
        "api-1:change_second_pair",
        "patch",
        (200, 403, 403, 403, 404, 401),
        {"second_pair": True},
        MANAGE,
    ),
    Row("api-1:list_datasets", "get", REST, scopes=READ),
    Row("api-1:get_dataset", "get", TEAM_REST, scopes=READ),
    Row("api-1:delete_dataset", "delete", MEMBER_DELETE, scopes=ADD_DATASETS),
    # For anyone but the creator of the upload, it does not exist.
    Row(
        "api-1:create_dataset_version",
        "post",
        (201, 409, 409, 403, 404, 401),
        _new_dataset,
        ADD_DATASETS,
    ),
    Row("api-1:get_dataset_version", "get", TEAM_REST, scopes=READ),
    Row("api-1:delete_dataset_version", "delete", MEMBER_DELETE, scopes=ADD_DATASETS),
    # Its check is not done.
    Row("api-1:derive_dataset_version", "post", (409,) * 3 + (403, 404, 401), {}, ADD_DATASETS),
    Row("api-1:list_dataset_uses", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_dataset_problems", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_dataset_problem", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_dataset_splits", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_dataset_difficulty", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_dataset_content", "get", TEAM_REST, scopes=READ),
    Row("api-1:start_dataset_validation", "post", MEMBER_ACCEPTED, {}, ADD_DATASETS),
    Row("api-1:get_dataset_validation", "get", TEAM_REST, scopes=READ),
    Row("api-1:start_dataset_overlap", "post", MEMBER_ACCEPTED, _other_version, ADD_DATASETS),
    Row("api-1:get_dataset_report", "get", TEAM_REST, scopes=READ),
    Row("api-1:cancel_dataset_report", "post", MEMBER_REST, {}, ADD_DATASETS),
    Row(
        "api-1:create_workspace_import",
        "post",
        # An upload is its creator's, Alice's.
        (202, 403, 403, 403, 404, 401),
        _new_workspace_import,
        MANAGE,
    ),
    Row("api-1:list_workspace_imports", "get", REST, scopes=READ),
    Row("api-1:get_workspace_import", "get", (200, 404, 404, 404, 404, 401), scopes=READ),
    Row("api-1:confirm_workspace_import", "post", (202, 404, 404, 404, 404, 401), scopes=MANAGE),
    Row("api-1:cancel_workspace_import", "post", (200, 404, 404, 404, 404, 401), scopes=MANAGE),
    # It waits for its user.
    Row("api-1:retry_workspace_import", "post", (409, 404, 404, 404, 404, 401), scopes=MANAGE),
    Row("api-1:create_upload", "post", (201, 201, 201, 403, 404, 401), _new_upload, ADD_DATASETS),
    Row("api-1:list_uploads", "get", REST, scopes=ASK_UPLOAD),
    # An upload is its creator's, Alice's; its offset is not the one the walk sends.
    Row("api-1:get_upload", "get", (200, 404, 404, 404, 404, 401), scopes=ASK_UPLOAD),
    Row("api-1:ask_upload", "head", (200, 404, 404, 404, 404, 401), scopes=ASK_UPLOAD),
    Row("api-1:append_to_upload", "patch", (409, 404, 404, 404, 404, 401), scopes=UPLOAD),
    Row("api-1:finish_upload", "post", (409, 404, 404, 404, 404, 401), scopes=UPLOAD),
    Row("api-1:delete_upload", "delete", (204, 404, 404, 404, 404, 401), scopes=UPLOAD),
    Row("api-1:list_workspaces", "get", REST, scopes=READ),
    Row("api-1:create_workspace", "post", (201,) * 5 + (401,), {"name": "Another"}, NO_TOKEN),
    Row("api-1:get_workspace", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_members", "get", TEAM_REST, scopes=READ),
    Row("api-1:change_member", "patch", (200, 200, 403, 403, 404, 401), {"role": "member"}, MANAGE),
    Row("api-1:delete_member", "delete", (204, 204, 403, 204, 404, 401), scopes=MANAGE),
    Row("api-1:transfer_workspace", "post", (200, 403, 403, 403, 404, 401), scopes=MANAGE),
    Row("api-1:export_workspace", "get", (200, 403, 403, 403, 404, 401), scopes=MANAGE),
    Row(
        "api-1:delete_workspace",
        "post",
        (409, 403, 403, 403, 404, 401),  # Alice already has a run at work
        {"name": "Trees"},
        NO_TOKEN,
    ),
    Row("api-1:list_audit_entries", "get", (200, 403, 403, 403, 404, 401), scopes=MANAGE),
    Row("api-1:get_audit_file", "get", (200, 403, 403, 403, 404, 401), scopes=MANAGE),
    Row("api-1:list_invitations", "get", (200, 200, 403, 403, 404, 401), scopes=MANAGE),
    Row(
        "api-1:create_invitation",
        "post",
        (201, 201, 403, 403, 404, 401),
        {"role": "viewer"},
        MANAGE,
    ),
    # The link was used up.
    Row("api-1:accept_invitation", "post", (404,) * 5 + (401,), {"token": "no-such"}, NO_TOKEN),
    Row("api-1:delete_invitation", "delete", (204, 204, 403, 403, 404, 401), scopes=MANAGE),
    Row("api-1:create_project", "post", (201, 201, 201, 403, 404, 401), {"name": "Elms"}, MANAGE),
    Row("api-1:get_project", "get", TEAM_REST, scopes=READ),
    Row(
        "api-1:change_project",
        "patch",
        (200, 403, 403, 403, 404, 401),
        {"visibility": "private"},
        MANAGE,
    ),
    Row("api-1:list_tokens", "get", PERSON_REST, scopes=NO_TOKEN),
    Row("api-1:create_token", "post", (201, 201, 201, 201, 404, 401), _new_rest_token, NO_TOKEN),
    Row("api-1:delete_token", "delete", (204, 404, 404, 404, 404, 401), scopes=NO_TOKEN),
    Row("api-1:list_trees", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_nodes", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_evaluations", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_projects", "get", REST, scopes=READ),
    Row("api-1:list_experiments", "get", REST, scopes=READ),
    Row("api-1:check_experiment", "post", MEMBER_REST, _new_run, OPERATE),
    Row("api-1:get_experiment", "get", TEAM_REST, scopes=READ),
    Row("api-1:list_exports", "get", REST, scopes=READ),
    Row("api-1:create_export", "post", (201, 201, 201, 201, 404, 401), _new_export, READ),
    Row("api-1:get_export", "get", TEAM_REST, scopes=READ),
    Row("api-1:get_export_file", "get", TEAM_REST, scopes=READ),
    Row("api-1:delete_export", "delete", (204, 204, 204, 403, 404, 401), scopes=READ),
    # Redirects to the parent page, which requires sign-in.
    *(Row(name_of(route), "get", (302,) * 6) for route in PAGES),
)

SENT_ON: Answers = (302,) * 6
DENIED: Answers = (401, 401, 401, 401, 401, 302)
WITH_MAIL_AND_PROVIDER: dict[tuple[str, str], Answers] = {
    ("account_reset_password", "get"): OPEN,
    ("account_reset_password", "post"): OPEN,  # the form again: no address was given
    ("account_reset_password_done", "get"): OPEN,
    ("account_reset_password_from_key", "get"): OPEN,  # reports that the key is invalid
    ("account_reset_password_from_key", "post"): OPEN,
    ("account_reset_password_from_key_done", "get"): OPEN,
    ("account_email", "get"): PAGE,
    ("account_email", "post"): SENT_ON,
    ("account_email_verification_sent", "get"): OPEN,
    ("account_confirm_email", "get"): OPEN,  # reports that the key is invalid
    ("socialaccount_connections", "get"): PAGE,
    ("socialaccount_connections", "post"): PAGE,
    ("socialaccount_signup", "get"): SENT_ON,  # no sign-in at the provider is pending
    ("socialaccount_signup", "post"): SENT_ON,
    ("socialaccount_login_cancelled", "get"): OPEN,
    ("socialaccount_login_error", "get"): DENIED,
    ("openid_connect_login", "get"): OPEN,
    ("openid_connect_login", "post"): SENT_ON,  # redirects to the provider
    ("openid_connect_callback", "get"): (401,) * 6,  # without the provider's parameters
}
"""Responses that differ on a site with mail and a provider."""

ANY_METHOD = {"api-1:api-root", "api-1:openapi-json"}
"""Ninja's own, which change nothing and accept any method."""

IN_A_PROJECT = {
    "run", "compare-trees", "log", "api-1:list_steps", "api-1:list_log_lines",
    "api-1:list_logged", "api-1:track_run", "api-1:add_rollouts", "about-run",
    "mark-runs", "stop-run", "resume-run", "kill-run", "run-priority", "run-note",
    "delete-run", "api-1:get_run_deletion", "api-1:delete_run",
    "api-1:kill_run", "api-1:set_priority", "api-1:write_note", "api-1:get_actions",
    "api-1:get_checkpoints", "api-1:create_version_of_checkpoint", "register-checkpoint",
    "api-1:clone_run", "api-1:fork_run",
    "api-1:create_experiment_of_runs", "model", "project-visibility",
    "api-1:get_run", "api-1:stop_run", "api-1:resume_run", "api-1:get_state", "api-1:get_events",
    "api-1:get_folded", "api-1:add_events", "api-1:get_moments", "api-1:get_tree", "api-1:get_node",
    "api-1:create_run", "api-1:list_trees", "api-1:list_nodes", "api-1:list_evaluations",
    "api-1:mark_run",
    "api-1:get_project", "api-1:change_project",
    "api-1:list_metrics", "api-1:get_metric", "api-1:list_points",
    "api-1:get_step_trees",
    "shares", "revoke-share", "version", "archive", "version-notes", "evaluate-version",
    "delete-evaluation", "delete-version", "delete-model", "promote", "decide-promotion",
    "cancel-model-import", "retry-model-import", "api-1:create_model_import",
    "api-1:list_model_imports", "api-1:get_model_import", "api-1:cancel_model_import",
    "api-1:retry_model_import",
    "compare-versions", "api-1:create_model", "api-1:compare_versions", "api-1:get_model",
    "api-1:delete_model", "api-1:list_versions", "api-1:create_version", "api-1:get_version",
    "api-1:change_version", "api-1:delete_version", "api-1:get_card", "api-1:get_archive",
    "api-1:list_promotions", "api-1:create_promotion", "api-1:approve_promotion",
    "api-1:refuse_promotion", "api-1:list_model_evaluations", "api-1:create_model_evaluation",
    "api-1:get_model_evaluation", "api-1:delete_model_evaluation",
    "search-problems", "api-1:list_searches", "api-1:create_search_in_project",
    "api-1:check_search_in_project", "api-1:list_search_members", "api-1:list_search_problems",
    "api-1:get_search", "api-1:get_answer",
    "comments", "edit-comment", "delete-comment", "open-notice",
    "api-1:list_comments", "api-1:create_comment", "api-1:change_comment", "api-1:delete_comment",
    "dataset", "dataset-version", "dataset-problem", "dataset-report",
    "check-dataset", "derive-dataset", "delete-dataset", "compare-dataset", "cancel-dataset-report",
    "api-1:get_dataset", "api-1:delete_dataset", "api-1:get_dataset_version",
    "api-1:delete_dataset_version", "api-1:derive_dataset_version", "api-1:list_dataset_uses",
    "api-1:list_dataset_problems", "api-1:get_dataset_problem", "api-1:get_dataset_splits",
    "api-1:get_dataset_difficulty", "api-1:get_dataset_content", "api-1:start_dataset_validation",
    "api-1:get_dataset_validation", "api-1:start_dataset_overlap", "api-1:get_dataset_report",
    "api-1:cancel_dataset_report",
    "api-1:list_shares", "api-1:create_share", "api-1:revoke_share",
    "comparison-shares", "revoke-comparison-share", "api-1:list_comparison_shares",
    "api-1:share_comparison", "api-1:unshare_comparison",
    "api-1:check_experiment", "api-1:get_experiment", "remove-export", "api-1:create_export",
    "api-1:get_export",
    "api-1:get_export_file",
    "api-1:delete_export",
    "project-alerts", "mute-run", "add-alert-rule", "delete-alert-rule", "add-alert-channel",
    "change-alert-channel", "api-1:list_alerts", "api-1:list_alert_rules", "api-1:mute_run",
    "api-1:create_alert_rule", "api-1:delete_alert_rule", "change-alert-rule",
    "api-1:get_alert_rule", "api-1:change_alert_rule", "api-1:list_alert_channels",
    "api-1:create_alert_channel", "api-1:act_on_alert_channel", "api-1:delete_alert_channel",
    "report", "edit-report", "report-history", "export-report", "delete-report", "report-shares",
    "revoke-report-share", "api-1:create_report", "api-1:get_report", "api-1:change_report",
    "api-1:delete_report", "api-1:list_report_versions", "api-1:get_report_file",
    "api-1:list_report_shares", "api-1:share_report", "api-1:unshare_report",
}  # fmt: skip
"""Does not exist for those who may not see its project, members or not."""
