"""Tests of the list of runs: sorting, filters and marks, by page and by REST."""

import json
import re
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, an_event, many_runs
from webapp.experiments.annotations import annotations
from webapp.experiments.models import Run, Star
from webapp.experiments.runs_list.listing import SORTS
from webapp.markdown import render
from webapp.telemetry.ingest.ingest import ingest


def names(response):
    return [run.seed for run in response.context["runs"]]


def walk(client, address):
    """Seeds of all pages of the list, starting with the first."""
    seen, cursor = [], ""
    while True:
        page = client.get(f"{address}&{urlencode({'cursor': cursor})}")
        seen += names(page)
        cursor = page.context["next_cursor"]
        if not cursor:
            return seen


def some_runs(cast):
    """Three runs that differ in everything by which the list sorts and filters."""
    made = [
        a_run(cast, RunState.FINISHED, seed=1, step=9, result={"solved": 0.5, "reward": 0.1}),
        a_run(cast, RunState.FAILED, seed=2, step=3, tags=["base", "old"]),
        a_run(cast, RunState.RUNNING, seed=3, step=5, result={"solved": 0.9, "reward": 0.3}),
    ]
    for run, name in zip(made, ("Beech", "ash", "Cedar"), strict=True):
        run.experiment.name = name
        run.experiment.save()
    return made


@pytest.mark.parametrize(
    "sort, seeds",
    [("name", [2, 1, 3]), ("-name", [3, 1, 2]), ("-step", [1, 3, 2]), ("seed", [1, 2, 3]),
     ("-solved", [3, 1, 2]), ("solved", [2, 1, 3]), ("state", [2, 1, 3]), ("created", [1, 2, 3]),
     ("-reward", [3, 1, 2])],
)  # fmt: skip
def test_the_list_is_sorted_as_requested(client, cast, sort, seeds):
    some_runs(cast)
    client.force_login(cast.vera)
    assert names(client.get(f"/?sort={sort}")) == seeds
    requested = {"created": "oldest"}.get(sort, sort)
    body = client.get(f"/api/v1/runs?sort={requested}").json()["runs"]
    assert [run["seed"] for run in body] == seeds


@pytest.mark.parametrize(
    "query, seeds",
    [("q=ash", [2]), ("q=BEE", [1]), ("q=base", [2]), ("q=oaks+cedar", [3]), ("q=alice", [3, 2, 1]),
     ("q=nothing", []), ("tag=old", [2]), ("tag=ol", []), ("state=failed&q=cedar", []),
     ("project=999999", []), ("starred=1", [1]), ("archived=1", [])],
)  # fmt: skip
def test_the_list_is_filtered_as_requested(client, cast, query, seeds):
    beech, *_ = some_runs(cast)
    annotations.star([beech.pk], cast.vera, True)
    client.force_login(cast.vera)
    assert names(client.get(f"/?{query}")) == seeds
    body = client.get(f"/api/v1/runs?{query}").json()["runs"]
    assert [run["seed"] for run in body] == seeds


@pytest.mark.large
def test_pages_of_any_order_leave_no_gap_and_double_nothing(client, cast):
    runs = many_runs(cast, 101)
    for run in runs[::3]:
        run.result, run.step = {"solved": run.seed / 100, "reward": 0.5}, run.seed % 7
    Run.objects.bulk_update(runs[::3], ["result", "step"])
    client.force_login(cast.bob)
    for sort in (*SORTS, *(f"-{key}" for key in SORTS)):
        assert sorted(walk(client, f"/?sort={sort}")) == list(range(101)), sort


@pytest.mark.parametrize(
    "query",
    ["sort=luck", "col=luck", "project=x", "project=-1", f"q={'x' * 201}", "q=%00", "tag=%00",
     "sort=step&cursor=1e400_00000000-0000-0000-0000-000000000000",
     "sort=step&cursor=%22x%22_00000000-0000-0000-0000-000000000000",
     "sort=name&cursor=%22%5Cud800%22_00000000-0000-0000-0000-000000000000",
     "sort=name&cursor=7_00000000-0000-0000-0000-000000000000", "metric=%00",
     "&".join(f"metric=m{n}" for n in range(9))],
)  # fmt: skip
def test_an_invalid_query_is_a_bad_request(client, cast, query):
    a_run(cast)
    client.force_login(cast.bob)
    assert client.get(f"/?{query}").status_code == 400


def test_columns_are_chosen_in_the_address_and_kept_by_every_link(client, cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(1, "agent.update", agent="oak", step=1, kl=0.0625)])
    client.force_login(cast.bob)
    page = client.get("/?col=seed&col=recipe&metric=kl.oak&metric=none")
    table = page.context["table"]
    assert [head.column.key for head in table.headings] == ["seed", "recipe"]
    assert table.rows[0].recipe == "mars2" and table.rows[0].metrics == [0.0625, None]
    link = table.headings[0].link
    assert link == "?sort=-seed&col=seed&col=recipe&metric=kl.oak&metric=none"
    again = client.get(f"/{link}").context["table"]
    assert again.headings[0].order == "descending" and "sort=seed&" in again.headings[0].link
    assert client.get("/?col=").context["table"].headings == []


def test_chosen_runs_are_marked_and_the_list_is_as_it_was(client, cast):
    first, second, _ = some_runs(cast)
    client.force_login(cast.bob)
    chosen = {"run": [first.pk, second.pk], "query": "?sort=seed"}
    post = lambda **fields: client.post(reverse("mark-runs"), {**chosen, **fields})  # noqa: E731
    assert post(do="star").url == "/?sort=seed"
    assert Star.objects.filter(user=cast.bob).count() == 2
    post(do="unstar", run=[first.pk])
    assert names(client.get("/?starred=1")) == [2]
    post(do="tag", tag="new")
    second.refresh_from_db()
    assert second.tags == ["base", "old", "new"]
    post(do="archive")
    assert names(client.get("/")) == [3] and names(client.get("/?archived=1")) == [2, 1]
    post(do="restore")
    assert names(client.get("/?sort=seed")) == [1, 2, 3]
    assert post(do="charts").url == f"/charts/?run={first.pk}&run={second.pk}"
    assert post(do="compare").url == f"/compare/?run={first.pk}&run={second.pk}"
    for wrong, page in (
        ({"run": []}, "Choose at least one"),
        ({"do": "tag", "tag": "a b"}, "without spaces"),
        ({"run": ["x"]}, "Choose runs"),
    ):
        response = client.post(reverse("mark-runs"), {**chosen, "do": "star", **wrong}, follow=True)
        assert page in str(list(response.context["messages"])[-1])
    assert post(do="star", query="//elsewhere.example").url == "/"


def test_a_viewer_may_star_and_changes_nothing(client, cast):
    run = a_run(cast)
    client.force_login(cast.vera)
    fields = {"run": [run.pk], "tag": "x"}
    assert client.post(reverse("mark-runs"), {**fields, "do": "star"}).status_code == 302
    for do in ("archive", "restore", "tag"):
        assert client.post(reverse("mark-runs"), {**fields, "do": do}).status_code == 403
    client.force_login(cast.charlie)
    assert client.post(reverse("mark-runs"), {**fields, "do": "star"}).status_code == 404
    run.refresh_from_db()
    assert run.tags == [] and run.archived_at is None and Star.objects.get().user == cast.vera


def test_tags_and_notes_are_written_on_their_page_and_shown_on_the_runs(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    address = reverse("about-run", args=[run.pk])
    assert client.get(address).status_code == 200
    assert client.post(address, {"tags": "a, b a", "notes": "**good** <script>"}).status_code == 302
    content = client.get(reverse("run", args=[run.pk])).content
    assert b"<strong>good</strong> &lt;script&gt;" in content and b'href="/?tag=b">b</a>' in content
    assert client.post(address, {"tags": "x" * 41}).status_code == 422


def test_rest_marks_a_run(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)

    def patch(**fields):
        address = f"/api/v1/runs/{run.pk}"
        return client.patch(address, json.dumps(fields), content_type="application/json")

    body = patch(tags=["a", "a", "b"], notes="n", starred=True, archived=True).json()
    assert (body["tags"], body["notes"], body["starred"]) == (["a", "b"], "n", True)
    assert body["archived_at"] and patch().json() == body
    assert patch(archived=False).json()["archived_at"] is None
    wrong = patch(tags=["a b"])
    assert wrong.status_code == 422 and wrong.json()["problems"][0]["path"] == "tags"
    assert patch(tags=["\ud800"]).status_code == 422 and patch(notes="\0").status_code == 422
    assert patch(state="finished").status_code == 422
    client.force_login(cast.alice)
    assert client.get(f"/api/v1/runs/{run.pk}").json()["starred"] is False


@pytest.mark.parametrize(
    "notes",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))",
        "[a](JaVaScRiPt&#58;alert(1))", "![a](http://foreign.example/x.png)", "<a href='x'>y</a>",
        "[a](data:text/html,<script>)", "<svg/onload=alert(1)>", "```\n</code><script>\n```",
        '[a](http://x.example "t\\" onclick=\\"alert(1)")', "<!-- <script> -->",
        "| a |\n|---|\n| <iframe src=x> |",
    ],
)  # fmt: skip
def test_notes_run_nothing_and_load_nothing(notes):
    html = render(notes)
    tags = re.findall(r"<(/?[a-zA-Z]+)([^>]*)>", html)
    assert not {name.strip("/").lower() for name, _ in tags} & {"script", "img", "iframe", "svg"}
    for _, attributes in tags:
        assert not re.search(
            r"\bon\w+\s*=\s*[\"']|javascript:|data:", attributes.split('title="')[0]
        )


def test_notes_are_markdown():
    html = render("# T\n\n**a** [b](https://x.example)\n\n| c |\n|---|\n| d |")
    assert "<h3>T</h3>" in html and "<strong>a</strong>" in html and "<td>d</td>" in html
    assert 'href="https://x.example"' in html and 'rel="nofollow noopener noreferrer"' in html
