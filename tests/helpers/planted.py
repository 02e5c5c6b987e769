"""One object of every kind in Alice's project, for tests that request every address.

Invariant: they are created once for the tests of a file, in a transaction that is never committed;
a test's changes are rolled back when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from tests.conftest import var_settings
from tests.helpers.alerts import a_channel, a_rule
from tests.helpers.builders import Cast, a_cast, a_held_run, a_registry, a_search, a_token, an_event
from tests.helpers.datasets import stored_version
from tests.helpers.workspace_zips import a_checked_import
from tests.webapp.telemetry.stream_server import a_session
from webapp.accounts.models import ApiToken, Scope, SignInLink, User
from webapp.accounts.services import create_sign_in_link
from webapp.alerts.evaluation import Occasion
from webapp.alerts.models import RuleKind
from webapp.alerts.notices import notify
from webapp.artifacts.models import Upload
from webapp.artifacts.services import begin
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.datasets.reports import request_overlap, request_validation
from webapp.experiments.models import Run
from webapp.experiments.runs_list.listing import RunQuery
from webapp.exports.making import make
from webapp.exports.models import Export, Format, Table
from webapp.exports.selectors import unavailable_reason
from webapp.exports.services import request_export, take
from webapp.projects.membership import invite
from webapp.projects.models import Invitation, Role
from webapp.registry.model_imports.requests import request_package
from webapp.reports import services as reports
from webapp.reports import sharing as report_links
from webapp.sharing import comparisons
from webapp.sharing.services import create_share
from webapp.telemetry.ingest.ingest import ingest


@pytest.fixture(scope="module")
def world(
    django_db_setup, django_db_blocker, tmp_path_factory
) -> Iterator[tuple[Cast, dict[str, Any]]]:
    """The cast, and the value of every placeholder of an address."""
    settings = override_settings(**var_settings(tmp_path_factory.mktemp("world")))
    with django_db_blocker.unblock(), settings, transaction.atomic():
        cast = a_cast()
        yield cast, plant(cast)
        transaction.set_rollback(True)


@pytest.fixture
def cast(world, db) -> Cast:
    return deepcopy(world[0])


@pytest.fixture(scope="module")
def sessions(world) -> dict[str, str]:
    """The session key of everybody who can sign in, by name."""
    people = ("alice", "mia", "bob", "vera", "charlie")
    return {name: a_session(getattr(world[0], name)).session_key for name in people}


@pytest.fixture
def arguments(world) -> dict[str, Any]:
    """Values of all placeholders of addresses: real objects of Alice's project. One that means
    something else in one address has the key `NAME OF THE ADDRESS.PLACEHOLDER`."""
    return world[1]


def plant(cast: Cast) -> dict[str, Any]:
    """Creates the objects."""
    run, fencing = a_held_run(cast, seconds=3600)
    planted = {"step": 1, "problem": "p", "statement": "s"}
    opened = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
    events = [
        an_event(1, "tree.open", tree=7, **planted),
        an_event(2, "node.open", tree=7, node=1, **opened),
        an_event(3, "system.sample", cpu_percent=50.0, memory_mb=100.0),
        an_event(4, "step.end", step=1, reward=0.5, solved=0.5, seconds=1.0, training_seconds=1.0),
    ]
    ingest(run.pk, fencing, events)
    version = stored_version(cast, "planted")
    request_validation(version, cast.alice)
    overlap = request_overlap(version, stored_version(cast, "planted too"), 0.5, cast.alice)
    share, link = create_share(run, cast.alice, timedelta(days=1))
    comment = write_comment(Target((run,)), cast.alice, "See it, @bob.", "http://testserver")
    comparison, compared = comparisons.share(
        [run, run], "test", cast.alice, timedelta(days=1), frozen=True
    )
    channel = a_channel(cast.project, "https://hooks.example/x")
    rule = a_rule(cast.project, cast.project, RuleKind.RUN_FAILED, channels=[channel])
    notify(rule, Occasion("planted", "It failed", "no memory", 1_700_000_000.0), run)
    for owner in (cast.alice, cast.bob):
        a_rule(owner, cast.project, RuleKind.RUN_ENDED)
    report = a_report(cast, run)
    report_share, shared_report = report_links.share(
        report, cast.alice, timedelta(days=1), frozen=False
    )
    workspace = cast.project.workspace
    a_token(cast.alice, workspace, Scope.ADMIN)
    joined = invite(workspace, cast.alice, Role.VIEWER, single_use=True)
    sign_in = create_sign_in_link(cast.bob)
    # Its ten minutes are shorter than a file of tests may take.
    SignInLink.objects.update(expires=timezone.now() + timedelta(days=1))
    return {
        "pk": _a_passkey_of_another().pk,
        "provider_id": "oidc",
        "uidb36": "1",
        "key": "abc",
        "secret": _last_part(link),
        "share_id": share.pk,
        "revoke-comparison-share.share_id": comparison.pk,
        "api-1:unshare_comparison.share_id": comparison.pk,
        "shared-comparison.secret": _last_part(compared),
        "api-1:get_shared_comparison.secret": _last_part(compared),
        "api-1:get_compared_metrics.secret": _last_part(compared),
        "api-1:get_compared_metric.secret": _last_part(compared),
        "api-1:get_compared_metric.name": "reward",
        "index": 0,
        "report_page_id": report.pk,
        "revoke-report-share.share_id": report_share.pk,
        "api-1:unshare_report.share_id": report_share.pk,
        "shared-report.secret": _last_part(shared_report),
        "export_id": _a_written_export(cast).pk,
        "comment_id": comment.pk,
        "rule_id": rule.pk,
        "channel_id": channel.pk,
        "notice_id": comment.notices.get(user=cast.bob).pk,
        "run_id": run.pk,
        "experiment_id": run.experiment_id,
        "step": 1,
        "tree": 7,
        "node": 1,
        **_of_a_search(cast),
        "name": "system.cpu_percent",
        "api-1:get_shared_metric.name": "reward",
        "recipe": "demo",
        **a_registry(cast),
        "workspace_import_id": a_checked_import(cast).pk,
        "import_id": request_package(cast.project, "smollm2", cast.alice).pk,
        "dataset_id": version.dataset_id,
        "dataset_version_id": version.pk,
        "dataset-problem.number": 1,
        "api-1:get_dataset_problem.number": 1,
        "report_id": overlap.pk,
        "upload_id": begin(cast.project, cast.alice, Upload.Kind.DATASET, "a.jsonl", 3).pk,
        "project_id": cast.project.pk,
        "slug": workspace.slug,
        "user_id": cast.vera.pk,
        "token_id": ApiToken.objects.get().pk,
        "invitation_id": Invitation.objects.get().pk,
        "sign-in-link.token": _last_part(sign_in),
        "invitation.token": _last_part(joined),
    }


def a_report(cast: Cast, run: Run) -> reports.ReportPage:
    """A report of Alice with a figure of each kind of the run, which has a tree 7, and a block that
    cannot be used."""
    blocks = {
        "chart": f"run: {run.pk}\nseries: reward, solved",
        "tree": f"run: {run.pk}\ntree: 7\nfrozen: first",
        "runs": f"run: {run.pk}",
        "pie": "slices: 8",
    }
    text = "".join(f"\n```grove {kind}\n{body}\n```\n" for kind, body in blocks.items())
    draft = reports.Draft("Wider trees", f"# Findings\n\nIt *learns*.\n{text}", "http://x")
    return reports.create_report(cast.project, cast.alice, draft)


def _of_a_search(cast: Any) -> dict[str, Any]:
    search = a_search(cast)
    names = ("get_search", "get_answer")
    runs = {f"api-1:{name}.run_id": search.run_id for name in names}
    return {**runs, "version_id": search.run.dataset_version_id}


def _a_passkey_of_another() -> Authenticator:
    dora = User.objects.create_user("dora")
    return Authenticator.objects.create(user=dora, type=Authenticator.Type.WEBAUTHN, data={})


def _a_written_export(cast: Any) -> Export:
    request_export(cast.project, cast.alice, Table.RUNS, Format.CSV, RunQuery())
    export = take()
    make(export, Event())
    export.refresh_from_db()
    assert not unavailable_reason(export), unavailable_reason(export)
    return export


def _last_part(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[1]
