"""Tests of reports: what they show to whom, what stays frozen, and that no text is lost."""

import re

from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from tests.helpers.builders import a_held_run, an_event
from webapp.audit.selectors import AuditQuery, entries
from webapp.comments.models import Notice
from webapp.experiments.models import Run
from webapp.projects import membership
from webapp.projects.models import Membership, Role, Visibility, Workspace
from webapp.projects.services import create_project
from webapp.reports import services
from webapp.reports.content import MOST_FIGURES, shown_page
from webapp.reports.embeds.readers import Reader
from webapp.reports.models import FrozenFigure, ReportPage, ReportShare, ReportVersion
from webapp.telemetry.ingest.ingest import ingest

NODE = {"agent": "oak", "parent": 0, "depth": 1, "draws": {}}
CLOSED = {
    "program": "p", "verdict": "passed", "score": 1.0, "fraction": 1.0, "tests": [], "tokens": 3,
    "stop": "end", "mean_logprob": 0.0, "policy_version": 0, "seconds": 0.1,
}  # fmt: skip


def steps(first: int, *rewards: float) -> list:
    return [
        an_event(
            first + index, "step.end", step=first + index, reward=reward, solved=0.5, seconds=1.0,
            training_seconds=1.0,
        )
        for index, reward in enumerate(rewards)
    ]  # fmt: skip


def a_charted_run(cast, *rewards: float) -> tuple[Run, int]:
    """A running run with these rewards, and a tree of two nodes."""
    run, fencing = a_held_run(cast)
    head = len(rewards)
    opened = {"step": 1, "problem": "sum", "statement": "Add <b>two</b> numbers."}
    tree = [
        an_event(head + 1, "tree.open", tree=7, **opened),
        an_event(head + 2, "node.open", tree=7, node=1, **NODE),
        an_event(head + 3, "node.close", tree=7, node=1, **CLOSED),
        an_event(head + 4, "node.open", tree=7, node=2, **NODE | {"parent": 1, "depth": 2}),
    ]
    ingest(run.pk, fencing, [*steps(1, *rewards), *tree])
    return Run.objects.get(pk=run.pk), fencing


def chart(run, *more: str) -> str:
    return "\n".join(["```grove chart", f"run: {run.pk}", "series: reward", *more, "```", ""])


def draft(text: str, title: str = "Wider trees") -> services.Draft:
    return services.Draft(title, text, "http://testserver")


def a_report(cast, text: str, author=None) -> ReportPage:
    return services.create_report(cast.project, author or cast.bob, draft(text))


def figures(page: ReportPage, user):
    page.refresh_from_db()
    return shown_page(page, Reader(user, page.project)).figures


def test_a_live_figure_follows_its_run_and_a_frozen_one_does_not(cast):
    run, fencing = a_charted_run(cast, 0.25, 0.5)
    page = a_report(cast, chart(run) + chart(run, "frozen: today"))
    ingest(run.pk, fencing, steps(run.head_seq + 1, 0.75))
    live, frozen = figures(page, cast.vera)
    assert (live.drawing.lines[0].last, frozen.drawing.lines[0].last) == ("0.75", "0.5")
    assert live.is_live and frozen.frozen_at and not frozen.is_live
    again = page.text.replace("today", "tomorrow")
    services.change_report(page, cast.bob, 1, draft(again))
    assert [one.drawing.lines[0].last for one in figures(page, cast.vera)] == ["0.75", "0.75"]


def test_bad_blocks_are_named_by_their_line_and_the_rest_is_shown(client, cast):
    run, _ = a_charted_run(cast, 0.5)
    text = "# Fine\n\n" + chart(run).replace("reward", "rewrd") + "```grove pie\n```\n" + chart(run)
    client.force_login(cast.bob)
    body = {"project": cast.project.pk, "title": "Mixed", "text": text}
    made = client.post("/api/v1/reports", body, "application/json")
    assert made.status_code == 201, made.content
    first, second = made.json()["problems"]
    assert (first["line"], first["value"]) == (5, "rewrd") and "its runs report reward" in first[
        "remedy"
    ]
    assert (second["line"], second["value"]) == (7, "pie")
    page = client.get(f"/reports/{made.json()['id']}/").content.decode()
    assert "Line 5: series" in page and page.count('<svg class="report-chart"') == 2, "and its key"


def test_names_of_stored_events_are_shown_with_escapes(client, cast):
    client.force_login(cast.vera)
    run, fencing = a_charted_run(cast, 0.5)
    hidden = "o\u202eak\x07"
    ingest(
        run.pk,
        fencing,
        [
            an_event(6, "tree.open", tree=8, step=1, problem=hidden, statement="Add."),
            an_event(7, "node.open", tree=8, node=1, **NODE | {"agent": hidden}),
            an_event(8, "step.end", step=2, reward=1.0, reward_by_agent={hidden: 0.5}),
        ],
    )
    tree = f"```grove tree\nrun: {run.pk}\ntree: 8\n```\n"
    page = a_report(cast, chart(run) + tree)
    shown = client.get(f"/reports/{page.pk}/").content.decode()
    assert "\u202e" not in shown and "\x07" not in shown
    assert shown.count("o\\u202eak\\x07") >= 4


def test_no_line_of_a_chart_crosses_a_gap(client, cast):
    client.force_login(cast.vera)
    drawn = {}
    for rewards in ((0.5, None, 0.75, 1.0), (0.5, 0.75, 1.0)):
        run, _ = a_charted_run(cast, *rewards)
        page = a_report(cast, chart(run))
        shown = client.get(f"/reports/{page.pk}/").content.decode()
        line = max(re.findall(r'<path class="line of-0" d="([^"]*)"', shown), key=len)
        drawn[len(rewards)] = line.count("M"), shown.count('<circle class="dot of-0"')
    assert drawn == {4: (2, 1), 3: (1, 0)}


def test_blocks_beyond_the_limit_are_one_error_and_draw_nothing(cast):
    run, _ = a_charted_run(cast, 0.5)
    page = a_report(cast, chart(run) * 19 + "```grove pie\n```\n" * 100)
    shown = figures(page, cast.vera)
    assert len(shown) == MOST_FIGURES + 1 and shown[18].drawing
    assert shown[-1].error.remedy == "a report shows at most 20 figures: write a second one"


def test_two_editors_do_not_lose_each_others_text(client, cast):
    page = a_report(cast, "First.")
    client.force_login(cast.mia)
    address = f"/api/v1/reports/{page.pk}"
    theirs = client.patch(address, {"version": 1, "text": "Mia's."}, "application/json")
    assert theirs.status_code == 200 and theirs.json()["version"] == 2
    client.force_login(cast.bob)
    late = client.patch(address, {"version": 1, "text": "Bob's."}, "application/json")
    refusal = late.json()
    assert late.status_code == 409 and refusal["yours"]["text"] == "Bob's."
    assert refusal["current"] == {"version": 2, "title": "Wider trees", "text": "Mia's."}
    form = {"version": 1, "title": "T", "text": "Bob's\r\nlines."}
    shown = client.post(f"/reports/{page.pk}/edit/", form)
    assert shown.status_code == 409 and shown.context["form"].initial["version"] == 2
    assert (
        "Bob&#x27;s\nlines." in shown.content.decode() and "Mia&#x27;s." in shown.content.decode()
    )
    merged = client.post(f"/reports/{page.pk}/edit/", form | {"version": 2})
    assert merged.status_code == 302
    numbers = ReportVersion.objects.order_by("number").values_list(
        "number", "text", "made_by__username"
    )
    assert list(numbers) == [
        (1, "First.", "bob"), (2, "Mia's.", "mia"), (3, "Bob's\nlines.", "bob"),
    ]  # fmt: skip
    texts = [
        one.text for one in entries(cast.project.workspace, AuditQuery(kind="report"), None, 9)[0]
    ]
    assert texts[0] == "bob edited the report T of Oaks" and len(texts) == 3


def test_a_figure_shows_each_reader_the_runs_that_they_see(cast):
    """Alice alone sees her private project; nothing of it is frozen into a report of another."""
    private = create_project(cast.project.workspace, "Hers", "hers", created_by=cast.alice)
    private.visibility = Visibility.PRIVATE
    private.save()
    run, _ = a_charted_run(cast, 0.5)
    run.experiment.project = private
    run.experiment.save()
    page = a_report(cast, chart(run) + chart(run, "frozen: x"), cast.alice)
    live, frozen = figures(page, cast.alice)
    assert live.drawing and "of another project" in frozen.error.remedy
    live, _ = figures(page, cast.vera)
    assert "no such run that you may see" in live.error.remedy and str(run) not in live.error.remedy
    assert not FrozenFigure.objects.exists()


def shared(client, page: ReportPage, **more) -> str:
    made = client.post(f"/api/v1/reports/{page.pk}/shares", more, "application/json")
    assert made.status_code == 201, made.content
    return made.json()["link"].removeprefix("http://testserver")


def test_a_guest_sees_the_report_live_or_frozen_and_nothing_else(client, cast):
    run, fencing = a_charted_run(cast, 0.25)
    page = a_report(cast, "See it.\n\n" + chart(run))
    client.force_login(cast.bob)
    live, frozen = shared(client, page), shared(client, page, frozen=True)
    ingest(run.pk, fencing, steps(run.head_seq + 1, 0.75))
    services.change_report(page, cast.bob, 1, draft("Changed.\n\n" + page.text))
    new, old = (Client().get(path).content.decode() for path in (live, frozen))
    assert "Changed." in new and "<b>0.75</b>" in new
    assert "Changed." not in old and "<b>0.25</b>" in old
    for shown in (new, old):
        assert str(run.pk) not in shown and "/runs/" not in shown.partition("<main")[2]
    membership.remove_member(cast.project.workspace, cast.bob.pk, cast.alice)
    assert [Client().get(path).status_code for path in (live, frozen)] == [404, 404]
    assert not ReportShare.objects.valid().exists()


def test_a_guest_sees_no_load_no_people_and_no_tags_however_they_were_kept(client, cast):
    """Of a run, a report's link shows what a link to the run shows."""
    run, fencing = a_charted_run(cast, 0.25)
    sample = an_event(run.head_seq + 1, "system.sample", cpu_percent=12.5, memory_mb=777.0)
    ingest(run.pk, fencing, [sample])
    Run.objects.filter(pk=run.pk).update(tags=["quercus"])
    columns = "state, tags, by, seed"
    text = "".join(
        chart(run, "series: system", *frozen)
        + chart(run, *frozen).replace("reward", "system.memory_mb")
        + f"```grove runs\nrun: {run.pk}\ncolumns: {columns}\n"
        + "\n".join(["metrics: reward, system.memory_mb", *frozen, "```\n"])
        for frozen in ((), ("frozen: now",))
    )
    page = a_report(cast, text)
    secrets = ("system.", "777", "quercus", "bob", "Started by")
    client.force_login(cast.bob)
    own = client.get(f"/reports/{page.pk}/").content.decode()
    assert all(one in own for one in secrets)
    for frozen in (False, True):
        path = shared(client, page, frozen=frozen)
        shown = Client().get(path).content.decode().partition("<main")[2]
        assert [one for one in secrets[1:] if one in shown] == []
        assert shown.count("<figure") == 4 and "<b>0.25</b>" in shown and ">0.25<" in shown
        assert shown.count("cannot be shown") == 2, "charts of nothing else"


def test_a_run_that_the_maker_of_a_link_may_not_share_is_left_out(client, cast):
    """Bob sees a run of Charlie's workspace as a viewer, who may not share it."""
    elsewhere = Workspace.objects.get(name="Elsewhere")
    there = create_project(elsewhere, "There", "there", created_by=cast.charlie)
    Membership.objects.create(workspace=elsewhere, user=cast.bob, role=Role.VIEWER)
    hidden, _ = a_charted_run(cast, 0.125)
    hidden.experiment.project = there
    hidden.experiment.save()
    run, _ = a_charted_run(cast, 0.25)
    page = a_report(cast, chart(run).replace(f"run: {run.pk}", f"run: {run.pk}\nrun: {hidden.pk}"))
    assert len(figures(page, cast.bob)[0].drawing.lines) == 2
    client.force_login(cast.bob)
    for frozen in (False, True):
        shown = Client().get(shared(client, page, frozen=frozen)).content.decode()
        assert "this run is not shared by the link" in shown and "<b>0.25</b>" in shown
        assert str(hidden.pk) not in shown and "0.125" not in shown


def test_a_link_that_was_made_is_known_after_the_report_is_deleted(client, cast):
    page = a_report(cast, "See it.")
    client.force_login(cast.bob)
    path = shared(client, page)
    assert client.post(f"/reports/{page.pk}/delete/").status_code == 302
    assert Client().get(path).status_code == 404 and not ReportShare.objects.exists()
    query = AuditQuery()
    texts = [one.text for one in entries(cast.project.workspace, query, None, 9)[0]]
    assert texts[:3] == [
        "bob deleted the report Wider trees of Oaks",
        "bob created a share link to the report Wider trees",
        "Grove wrote the report Wider trees of Oaks",
    ]


HOSTILE = """<img src=https://evil.example/x onerror=alert(1)>
![x](https://evil.example/pixel.png)
[a](javascript:alert(1)) [b](data:text/html,<script>) [c](https://example.com "t")

```grove <script>alert(1)</script>
run: "><script>alert(1)</script>
```

```grove chart
run: "><script>alert(1)</script>
```
"""


def test_hostile_text_is_shown_as_text_and_requests_nothing(client, cast):
    run, _ = a_charted_run(cast, 0.5)
    run.experiment.name = "<script>alert(2)</script>"
    run.experiment.save()
    table = f"```grove runs\nrun: {run.pk}\ntitle: <svg onload=alert(3)>\n```\n"
    page = services.create_report(
        cast.project, cast.bob, draft(HOSTILE + table + chart(run), "<script>alert(4)</script>")
    )
    client.force_login(cast.vera)
    for address in ("", "history/", "export/", "edit/"):
        if address == "edit/":
            client.force_login(cast.bob)
        shown = client.get(f"/reports/{page.pk}/{address}").content.decode()
        assert not re.search(r"<script>|<script[^>]*>alert|<img|<svg onload", shown), address
        tags = " ".join(re.findall(r"<[a-z][^>]*>", shown))
        assert not re.search(r"""src=(?!["']?/static/)""", tags), address
        found = set(re.findall(r"""href=["']?([a-z]+:[^"'> ]*)""", tags))
        # A picture becomes a link, which requests nothing until somebody chooses it.
        assert found <= {"https://example.com", "https://evil.example/pixel.png"}, address
    html = client.get(f"/api/v1/reports/{page.pk}").json()["html"]
    assert not re.search(r"<script|<img|<svg onload|javascript:[^<]*\"", html)


def test_a_report_is_exported_as_one_file_that_needs_nothing_else(client, cast):
    run, _ = a_charted_run(cast, 0.25, 0.5)
    tree = f"```grove tree\nrun: {run.pk}\ntree: 7\n```\n"
    table = "```grove runs\nexperiment: Shade\ncolumns: state, seed\nmetrics: reward\n```\n"
    page = a_report(cast, "<script>alert(1)</script>\n\n" + chart(run) + tree + table)
    client.force_login(cast.vera)
    answer = client.get(f"/reports/{page.pk}/export/")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="wider-trees.html"'
    text = answer.content.decode()
    again = client.get(f"/api/v1/reports/{page.pk}/export").content.decode()
    assert again.partition(" · exported ")[0] == text.partition(" · exported ")[0]
    assert again.partition("<article")[2] == text.partition("<article")[2]
    assert not re.findall(r"<script|<link|<img|\b(?:src|href)=|url\(|@import", text)
    assert "&lt;script&gt;" in text and text.count("<figure") == 3 and "&lt;b&gt;two" in text
    assert "prefers-color-scheme: dark" in text and "--page: #0e1319" in text
    assert f">{run.run_state.label}<" in text and ">0.5<" in text


def test_mentioned_members_who_see_the_report_are_notified_once(
    cast, settings, django_capture_on_commit_callbacks
):
    settings.MAIL_IS_SENT = True
    address = {"email": "mia@example.com", "verified": True, "primary": True}
    EmailAddress.objects.create(user=cast.mia, **address)
    with django_capture_on_commit_callbacks(execute=True):
        page = a_report(cast, "Look, @mia and @charlie.")
    (sent,) = mail.outbox
    assert sent.to == ["mia@example.com"] and f"http://testserver/reports/{page.pk}/" in sent.body
    services.change_report(page, cast.bob, 1, draft("Look again, @mia."))
    services.change_report(page, cast.bob, 2, draft("@vera, see it. @mia too."))
    notices = Notice.objects.order_by("pk")
    assert [one.user.username for one in notices] == ["mia", "vera"]
    assert notices[0].title == "bob mentioned you in the report Wider trees"
    assert notices[0].path == f"/reports/{page.pk}/"
    services.delete_report(page)
    assert not Notice.objects.exists()


def test_frozen_data_are_kept_as_long_as_a_kept_version_shows_them(cast):
    run, _ = a_charted_run(cast, 0.5)
    page = a_report(cast, chart(run, "frozen: a"))
    services.change_report(page, cast.bob, 1, draft("Without."))
    assert FrozenFigure.objects.count() == 1, "version 1 shows it"
    last = ReportVersion.objects.get(number=2)
    ReportVersion.objects.bulk_create(
        ReportVersion(page=page, number=number, title="T", made_by=cast.bob, made=last.made)
        for number in range(3, services.MOST_VERSIONS + 1)
    )
    ReportPage.objects.update(version=services.MOST_VERSIONS)
    services.change_report(page, cast.bob, services.MOST_VERSIONS, draft("Without, again."))
    assert not FrozenFigure.objects.exists()
    numbers = ReportVersion.objects.values_list("number", flat=True)
    assert (min(numbers), max(numbers)) == (2, services.MOST_VERSIONS + 1)
