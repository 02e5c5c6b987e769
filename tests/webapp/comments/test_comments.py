"""Tests of comments: who may read and write them, who is notified, and that no markup runs."""

from datetime import timedelta

import pytest

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, a_token, an_event
from webapp.accounts.models import Scope
from webapp.audit.selectors import AuditQuery, entries
from webapp.comments.models import Comment, Notice
from webapp.comments.services import write_comment
from webapp.comments.targets import find_target
from webapp.projects import membership
from webapp.projects.models import Project, Visibility
from webapp.projects.services import create_project
from webapp.sharing.services import create_share
from webapp.telemetry.ingest.ingest import ingest

SITE = "http://testserver"
NODE = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}


@pytest.fixture
def run(cast):
    run, fencing = a_held_run(cast)
    opened = {"step": 1, "problem": "p", "statement": "s"}
    events = [
        an_event(1, "tree.open", tree=7, **opened),
        an_event(2, "node.open", tree=7, node=3, **NODE),
    ]
    ingest(run.pk, fencing, events)
    return run


def write(user, text, *runs, **where) -> Comment:
    target = find_target(user, [one.pk for one in runs], **where)
    return write_comment(target, user, text, SITE)


def notified_reasons(user) -> list[str]:
    """Reasons of the notices to `user`, oldest first."""
    return list(Notice.objects.filter(user=user).order_by("pk").values_list("reason", flat=True))


def test_each_thing_has_a_thread_of_its_own(client, cast, run):
    other = a_run(cast, RunState.FINISHED)
    client.force_login(cast.bob)
    things = {
        "the run": {"run": [run.pk]},
        "the node": {"run": [run.pk], "tree": 7, "node": 3},
        "the two": {"run": [other.pk, run.pk]},
    }
    for text, about in things.items():
        answer = client.post("/comments/", {**about, "text": text})
        assert answer.status_code == 302
        page = client.get(answer.url)
        assert [one.text for one in page.context["thread"]] == [text]
        assert f'id="{answer.url.partition("#")[2]}"' in page.content.decode()
    turned = client.get("/comments/", {"run": [run.pk, other.pk]})
    assert [one.text for one in turned.context["thread"]] == ["the two"]
    card = f'data-comments="/comments/?run={run.pk}"'
    assert card in client.get(f"/runs/{run.pk}/").content.decode()
    both = client.get("/compare/", {"run": [run.pk, other.pk]}).content.decode()
    assert f"/comments/?run={run.pk}&amp;run={other.pk}" in both


def test_a_missing_object_has_no_comments(client, cast, run):
    client.force_login(cast.bob)
    wrong = (
        ({"run": [run.pk], "tree": 7, "node": 99}, 404),
        ({"run": [run.pk], "tree": 7}, 404),
        ({"run": [run.pk, a_run(cast).pk], "tree": 7, "node": 3}, 404),
        ({"run": ["x"]}, 400),
        ({}, 400),
        ({"run": [run.pk], "tree": -1, "node": 1}, 400),
    )
    for about, status in wrong:
        assert client.get("/comments/", about).status_code == status, about
    assert client.post("/comments/", {"run": [run.pk], "text": " "}).status_code == 422
    assert client.post("/comments/", {"run": [run.pk], "text": "a\0"}).status_code == 422
    assert not Comment.objects.exists()


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](https://elsewhere.example/pixel.png)",
    '[a](https://x.example "\\" onmouseover=alert(1) x=\\"")',
    "<https://x.example/'onclick=alert(1)>",
    "| <b onclick=x> |\n|---|\n| <svg/onload=alert(1)> |",
    "</textarea><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
)


def test_nothing_in_a_comment_runs_or_loads(client, cast, run):
    made = [write(cast.bob, f"{text} @alice", run) for text in HOSTILE]
    client.force_login(cast.alice)
    comments = client.get(f"/api/v1/comments?run={run.pk}").json()["comments"]
    assert len(comments) == len(HOSTILE)
    for shown in (
        "".join(one["html"] for one in comments),
        client.get("/comments/", {"run": [run.pk]}).content.decode(),
        client.get("/inbox/").content.decode(),
    ):
        body = shown[shown.find("<main") :]
        for bad in ("<script>", "<img", "<svg/", "<b onclick", 'href="javascript', 'href="data:'):
            assert bad not in body, bad
        assert ' onmouseover="' not in body and ' onclick="' not in body
    client.force_login(cast.bob)
    form = client.get(f"/comments/{made[8].pk}/edit/").content.decode()
    assert "<script>alert" not in form


def test_a_mentioned_member_is_notified_once_and_strangers_are_not(cast, run):
    write(cast.bob, "@mia, @vera. And @charlie, mail@alice @nobody @bob (@mia)", run)
    assert [notified_reasons(user) for user in (cast.mia, cast.vera)] == [["mentioned"]] * 2
    assert notified_reasons(cast.charlie) == notified_reasons(cast.bob) == []
    assert notified_reasons(cast.alice) == ["own-run"], "an address is no mention; the run is hers"
    write(cast.mia, "well", run)
    assert notified_reasons(cast.bob) == ["answered"] and notified_reasons(cast.vera) == [
        "mentioned"
    ]


def test_an_edit_notifies_only_newly_mentioned_members(client, cast, run):
    made = write(cast.bob, "@mia look", run)
    client.force_login(cast.bob)
    client.post(f"/comments/{made.pk}/edit/", {"text": "@mia @vera look"})
    assert notified_reasons(cast.mia) == notified_reasons(cast.vera) == ["mentioned"]
    made.refresh_from_db()
    assert made.edited is not None and made.text == "@mia @vera look"
    assert b"edited" in client.get("/comments/", {"run": [run.pk]}).content


def test_nobody_is_notified_of_a_run_they_may_not_see(client, cast, run):
    hidden = create_project(
        cast.project.workspace, "Elms", "elms", Visibility.PRIVATE, created_by=cast.bob
    )
    elsewhere = a_run(cast)
    elsewhere.experiment.project = hidden
    elsewhere.experiment.save()
    write(cast.bob, "@mia @alice", run, elsewhere)
    assert notified_reasons(cast.mia) == [] and notified_reasons(cast.alice) == ["mentioned"]
    client.force_login(cast.mia)
    both = {"run": [run.pk, elsewhere.pk]}
    assert client.get("/comments/", both).status_code == 404
    assert not Comment.objects.visible_to(cast.mia).exists(), "one of the two is enough"
    assert Comment.objects.visible_to(cast.bob).exists()


def test_the_inbox_counts_what_is_unread_and_forgets_what_one_may_not_see(client, cast, run):
    for text in ("@bob one", "@bob two"):
        write(cast.alice, text, run)
    client.force_login(cast.bob)
    page = client.get("/inbox/").content.decode()
    assert 'aria-label="Inbox, 2 unread"' in page and "@bob two" in page
    newest = Notice.objects.latest("pk")
    opened = client.post(f"/inbox/{newest.pk}/")
    assert opened.url.endswith(f"#comment-{newest.comment_id}")
    assert 'aria-label="Inbox, 1 unread"' in client.get("/").content.decode()
    client.post("/inbox/read/")
    assert 'aria-label="Inbox"' in client.get("/").content.decode()
    write(cast.alice, "@bob three", run)
    membership.remove_member(cast.project.workspace, cast.bob.pk, cast.alice)
    page = client.get("/inbox/")
    assert b"three" not in page.content and b'aria-label="Inbox"' in page.content


def test_the_inbox_is_walked_in_pages(client, cast, run):
    for number in range(53):
        write(cast.alice, f"@bob number {number}", run)
    client.force_login(cast.bob)
    first = client.get("/inbox/").context
    second = client.get("/inbox/", {"before": first["older"]}).context
    assert [len(one["notices"]) for one in (first, second)] == [50, 3] and not second["older"]
    assert client.get("/inbox/", {"before": "x"}).status_code == 400


def test_mail_goes_to_verified_addresses_of_the_mentioned(
    cast, run, settings, mailoutbox, django_capture_on_commit_callbacks
):
    for user, verified in ((cast.mia, True), (cast.vera, False)):
        address = f"{user}@example.org"
        user.emailaddress_set.create(email=address, verified=verified, primary=True)
    with django_capture_on_commit_callbacks(execute=True):
        write(cast.bob, "@mia @vera look", run)
    assert mailoutbox == [], "no mail is configured"
    settings.MAIL_IS_SENT = True
    with django_capture_on_commit_callbacks(execute=True):
        made = write(cast.bob, "@mia @vera look\nhere", run)
    (sent,) = mailoutbox
    assert sent.to == ["mia@example.org"] and sent.subject == f"[Grove] bob mentioned you at {run}"
    assert f"{SITE}/comments/?run={run.pk}#comment-{made.pk}" in sent.body


def test_a_guest_of_a_link_sees_no_comment(client, cast, run):
    write(cast.alice, "between us", run)
    for tree in (None, 7):
        _, link = create_share(run, cast.alice, timedelta(days=1), tree)
        page = client.get(link).content.decode()
        assert "between us" not in page and "data-comments" not in page
    assert client.get("/comments/", {"run": [run.pk]}).status_code == 302
    assert client.get(f"/api/v1/comments?run={run.pk}").status_code == 401


def test_rest_creates_edits_deletes_and_lists_comments(client, cast, run):
    bearer = {"authorization": f"Bearer {a_token(cast.bob, cast.project, Scope.RUNS_WRITE)}"}
    json = {"content_type": "application/json", "headers": bearer}
    requested = {"run": [str(run.pk)], "tree": 7, "node": 3, "text": "@mia **here**"}
    made = client.post("/api/v1/comments", requested, **json).json()
    assert made["node"] == 3 and "<strong>here</strong>" in made["html"]
    address = f"/api/v1/comments/{made['id']}"
    assert client.patch(address, {"text": "there"}, **json).json()["text"] == "there"
    where = f"?run={run.pk}&tree=7&node=3"
    body = client.get(f"/api/v1/comments{where}", headers=bearer).json()
    assert [one["text"] for one in body["comments"]] == ["there"] and body["next"] is None
    client.force_login(cast.mia)
    (notice,) = client.get("/api/v1/inbox").json()["notices"]
    assert notice["reason"] == "mentioned" and notice["read_at"] is None
    client.post("/api/v1/inbox/read", {"notices": [notice["id"]]}, content_type="application/json")
    assert client.get("/api/v1/inbox").json()["notices"][0]["read_at"]
    assert client.delete(address).status_code == 204, "a maintainer removes it"
    noted = [
        one.text for one in entries(cast.project.workspace, AuditQuery(kind="comment"), None, 9)[0]
    ]
    assert noted == [
        f"mia deleted a comment of bob on node 3 of tree 7 of {run}",
        f"bob edited a comment on node 3 of tree 7 of {run}",
        f"bob wrote a comment on node 3 of tree 7 of {run}",
    ]


def test_a_member_demoted_to_viewer_changes_nothing(client, cast, run):
    made = write(cast.bob, "mine", run)
    cast.bob.memberships.update(role="viewer")
    client.force_login(cast.bob)
    page = client.get("/comments/", {"run": [run.pk]}).content.decode()
    assert "mine" in page and "/edit/" not in page and "<textarea" not in page
    assert client.post(f"/comments/{made.pk}/edit/", {"text": "x"}).status_code == 403
    assert client.post(f"/comments/{made.pk}/delete/").status_code == 403


def test_comments_of_a_private_project_are_its_creators_and_owners(client, cast, run):
    write(cast.alice, "@vera", run)
    Project.objects.update(visibility=Visibility.PRIVATE, created_by=cast.bob)
    client.force_login(cast.vera)
    assert client.get("/comments/", {"run": [run.pk]}).status_code == 404
    assert client.get("/api/v1/inbox").json()["notices"] == []
