"""Tests of the policy: off by default, announced first, and what is kept is kept and counted."""

from datetime import timedelta

import pytest
from django.utils import timezone

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_run
from webapp.comments.models import Notice
from webapp.experiments.annotations import annotations
from webapp.experiments.models import Run
from webapp.projects.models import Visibility
from webapp.registry.models import Model, ModelVersion
from webapp.retention import policy
from webapp.retention.models import PlannedDeletion


def ended(cast, days: float, **fields) -> Run:
    """A finished run whose end is `days` ago."""
    at = timezone.now() - timedelta(days=days)
    return a_run(cast, RunState.FINISHED, finished_at=at, **fields)


def passes(days: float) -> None:
    """Makes everything that was announced `days` older."""
    PlannedDeletion.objects.update(announced_at=timezone.now() - timedelta(days=days))


@pytest.fixture
def workspace(cast):
    return cast.project.workspace


def test_nothing_is_deleted_without_a_policy_or_before_its_notice(cast, workspace, var_directory):
    old, newer = ended(cast, 400), ended(cast, 20)
    assert not policy.apply_next()
    policy.change_policy(workspace, 30)
    assert policy.apply_next() and not policy.apply_next(), "once a day"
    assert Run.objects.count() == 2
    assert [one.run_id for one in PlannedDeletion.objects.all()] == [old.pk]
    notices = Notice.objects.filter(key__startswith="retention")
    assert {one.user.username for one in notices} == {"alice", "mia", "bob", "vera"}
    assert f"{old} of Oaks is deleted on" in notices[0].title
    tomorrow = timezone.now() + timedelta(days=1)
    passes(5)
    assert policy.apply_next(tomorrow) and Run.objects.count() == 2
    passes(7)
    assert policy.apply_next(tomorrow + timedelta(days=1))
    assert [run.pk for run in Run.objects.all()] == [newer.pk]


def test_what_people_keep_is_kept_and_counted(cast, workspace, var_directory):
    policy.change_policy(workspace, 30)
    starred, tagged, versioned, plain = (ended(cast, 100) for _ in range(4))
    annotations.star([starred.pk], cast.vera, True)
    annotations.describe(tagged.pk, tags=["keep"])
    model = Model.objects.create(project=cast.project, name="oak")
    fields = {"model": model, "path": "/x", "sha256": "0" * 64, "parameters": 1}
    ModelVersion.objects.create(number=1, run=versioned, **fields)
    a_run(cast, RunState.RUNNING, created=timezone.now() - timedelta(days=100))
    seen = policy.forecast(workspace, 30, unused_versions=False)
    assert seen.due == 1 and seen.kept == {
        "starred": 1, "tagged keep": 1, "source of a model version": 1
    }  # fmt: skip
    policy.apply_next()
    passes(8)
    policy.apply_next(timezone.now() + timedelta(days=2))
    assert not Run.objects.filter(pk=plain.pk).exists() and Run.objects.count() == 4
    assert policy.forecast(workspace, 30, unused_versions=True).due == 1


def test_a_star_after_the_notice_keeps_the_run_and_more_days_announce_again(
    cast, workspace, var_directory
):
    policy.change_policy(workspace, 30)
    one, two = ended(cast, 60), ended(cast, 60)
    policy.apply_next()
    passes(8)
    annotations.star([one.pk], cast.bob, True)
    policy.change_policy(workspace, 40)
    assert policy.apply_next() and Run.objects.count() == 2, "announced again"
    assert [planned.run_id for planned in PlannedDeletion.objects.all()] == [two.pk]
    policy.change_policy(workspace, None)
    assert not PlannedDeletion.objects.exists() and not policy.apply_next()


def test_each_deletion_is_checked_again_after_the_ones_before_it(cast, workspace, var_directory):
    """What a pass has listed may change while it deletes for hours."""
    policy.change_policy(workspace, 30)
    runs = [ended(cast, 60) for _ in range(3)]
    policy.apply_next()
    passes(8)
    mine, now = policy.policy_of(workspace).pk, timezone.now()
    starred, later, due = (PlannedDeletion.objects.get(run=run) for run in runs)
    annotations.star([runs[0].pk], cast.bob, True)
    assert not policy._delete(starred, mine, now) and policy._delete(due, mine, now)
    policy.change_policy(workspace, 300)
    assert not policy._delete(later, mine, now), "kept for longer now"
    policy.change_policy(workspace, None)
    assert not policy._delete(later, mine, now), "kept for good now"
    assert {*Run.objects.values_list("pk", flat=True)} == {runs[0].pk, runs[1].pk}


def test_owners_decide_on_the_page_and_others_see_what_is_theirs_to_see(client, cast, workspace):
    address = f"/workspaces/{workspace.slug}/retention/"
    run = ended(cast, 60)
    client.force_login(cast.alice)
    assert b"kept for good" in client.get(address).content
    short = client.post(address, {"days": 6})
    assert short.status_code == 422 and b"greater than or equal to 7" in short.content
    assert client.post(address, {"days": 30}).status_code == 302
    policy.apply_next()
    assert client.get(address).context["forecast"].due == 1
    client.force_login(cast.vera)
    assert str(run).encode() in client.get(address).content
    cast.project.visibility = Visibility.PRIVATE
    cast.project.save()
    assert str(run).encode() not in client.get(address).content
    response = client.patch(f"/api/v1{address[:-1]}", {"days": 6}, content_type="application/json")
    assert response.status_code == 422 and "days" in response.content.decode()
