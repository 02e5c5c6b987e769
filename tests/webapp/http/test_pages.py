"""Tests of every page, for everybody of the cast."""

import json
import re
import time
import tomllib
import uuid

import pytest
from django.db import connection
from django.urls import reverse

from engine.config.methods import REGISTRIES, option_tables
from engine.config.schema import parse_config
from engine.events.vocabulary import RunState
from engine.recipes import load_recipe
from tests.helpers.builders import a_run, many_runs
from webapp.experiments.models import Run
from webapp.experiments.run_settings.settings_schema import flat
from webapp.templatetags.grove import with_code

PAGES = ("runs", "launch", "models", "searches", "new-search", "datasets")
LIST_QUERIES = 6
"""Session, user, runs, the minutes after which they end, the projects that permit new ones."""


def page_json(response):
    match = re.search(
        rb'<script id="page" type="application/json"[^>]*>(.*?)</script>', response.content, re.S
    )
    return json.loads(match[1])


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("who", ["alice", "bob", "vera", "charlie"])
def test_every_signed_in_user_sees_the_pages(client, cast, page, who):
    client.force_login(getattr(cast, who))
    assert client.get(reverse(page)).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_an_anonymous_visitor_is_redirected_to_sign_in(client, db, page):
    response = client.get(reverse(page))
    assert response.status_code == 302 and response.url.startswith("/sign-in/?next=")


def test_the_list_shows_ones_own_runs_only(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    assert list(client.get("/").context["runs"]) == [run]
    client.force_login(cast.charlie)
    assert list(client.get("/").context["runs"]) == []


def test_the_list_is_filtered_by_state(client, cast):
    a_run(cast)
    failed = a_run(cast, RunState.FAILED)
    client.force_login(cast.bob)
    assert list(client.get("/?state=failed").context["runs"]) == [failed]


def test_the_list_goes_on_over_pages_without_gap_or_double(client, cast):
    made = {a_run(cast).pk for _ in range(55)}
    client.force_login(cast.bob)
    first = client.get("/").context
    second = client.get("/", {"cursor": first["next_cursor"]}).context
    seen = [run.pk for page in (first, second) for run in page["runs"]]
    assert len(seen) == 55 and set(seen) == made and second["next_cursor"] is None


NOBODYS = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    "cursor",
    [
        "1",
        "_",
        "\0",
        "x" * 9000,
        "2026-01-01T00:00:00+00:00_x",
        f"9999-99-99_{NOBODYS}",
        f"2026-01-01T00:00:00_{NOBODYS}",
        f"0001-01-01T00:00:00+23:59_{NOBODYS}",
        f"9999-12-31T23:59:59-23:59_{NOBODYS}",
    ],
)
def test_a_cursor_of_ones_own_making_is_a_bad_request(client, cast, cursor):
    client.force_login(cast.bob)
    assert client.get("/", {"cursor": cursor}).status_code == 400


def test_a_page_of_the_list_leads_on_and_back_to_the_newest(client, cast):
    many_runs(cast, 120)
    client.force_login(cast.bob)
    first = client.get("/?state=finished")
    assert b"Newest runs" not in first.content
    cursor = first.context["next_cursor"]
    second = client.get("/", {"state": "finished", "cursor": cursor}).content
    assert b'href="/?state=finished">\xe2\x86\x90 Newest runs' in second and b"Older runs" in second


def test_a_page_after_the_last_leads_back(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    content = client.get("/", {"cursor": f"{run.created.isoformat()}_{run.pk}"}).content
    assert b"No older run" in content and b"Back to newest runs" in content


def test_a_state_that_does_not_exist_is_a_bad_request(client, cast):
    client.force_login(cast.bob)
    response = client.get("/?state=happy")
    assert response.status_code == 400 and b"queued, starting" in response.content


def test_an_empty_runs_list_shows_the_next_step(client, cast):
    client.force_login(cast.bob)
    content = client.get("/").content
    assert b"No runs yet" in content and b'href="/runs/new/">Start the first run' in content
    client.force_login(cast.vera)
    content = client.get("/").content
    assert b"Ask an owner" in content and b"first run" not in content


@pytest.mark.parametrize("who", ["vera", "charlie"])
def test_a_user_who_may_not_start_runs_sees_a_notice_instead_of_the_form(client, cast, who):
    client.force_login(getattr(cast, who))
    content = client.get(reverse("launch")).content
    assert b"Ask an owner" in content and b"Start the run" not in content


@pytest.mark.large
def test_ten_thousand_runs_cost_a_page_no_more_than_a_few(
    client, cast, django_assert_max_num_queries
):
    client.force_login(cast.bob)
    many_runs(cast, 100)
    of_few = cpu_seconds(client)
    many_runs(cast, 10_000)
    for address in ("/", "/?state=finished", "/?state=failed"):
        with django_assert_max_num_queries(LIST_QUERIES):
            client.get(address)
    cursor = client.get("/").context["next_cursor"]
    for query in ({}, {"cursor": cursor}):
        read = rows_read()
        with django_assert_max_num_queries(LIST_QUERIES):
            page = client.get("/", query)
        assert len(page.context["runs"]) == 50 and len(page.content) < 150_000
        assert rows_read() - read < 21_000, "each run and each experiment is read once at most"
    of_many = cpu_seconds(client)
    assert of_many < 3 * of_few


def cpu_seconds(client) -> float:
    """CPU time in which this process renders the first page of the runs."""

    def once() -> float:
        began = time.thread_time()
        assert client.get("/").status_code == 200
        return time.thread_time() - began

    return min(once() for _ in range(5))


def rows_read() -> int:
    """The rows that Postgres has read from tables in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
        )
        return int(cursor.fetchone()[0])


def test_the_run_page_passes_its_scripts_their_settings(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    page = page_json(client.get(reverse("run", args=[run.pk])))
    assert page["run"]["id"] == str(run.pk) and page["run"]["can_operate"] is True
    assert [agent["name"] for agent in page["agents"]] == ["oak", "fern"]
    assert {state["value"] for state in page["states"]} == set(RunState)
    assert all(state["label"] and state["colour"] for state in page["states"] + page["verdicts"])
    assert client.get(page["urls"]["state"]).status_code == 200


def test_a_viewer_sees_a_run_but_cannot_operate_it(client, cast):
    run = a_run(cast)
    client.force_login(cast.vera)
    assert client.get(reverse("run", args=[run.pk])).context["can_operate"] is False
    for action in ("stop-run", "resume-run"):
        assert client.post(reverse(action, args=[run.pk])).status_code == 403
    run.refresh_from_db()
    assert run.run_state is RunState.QUEUED


@pytest.mark.parametrize(
    "method, page", [("get", "run"), ("post", "stop-run"), ("post", "resume-run")]
)
def test_a_stranger_gets_not_found_for_a_run(client, cast, method, page):
    run = a_run(cast)
    client.force_login(cast.charlie)
    theirs = getattr(client, method)(reverse(page, args=[run.pk]))
    nothing = getattr(client, method)(reverse(page, args=[uuid.uuid4()]))
    assert theirs.status_code == nothing.status_code == 404
    run.refresh_from_db()
    assert run.run_state is RunState.QUEUED


def test_stop_and_resume_lead_back_to_the_run(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    assert client.post(reverse("stop-run", args=[run.pk])).url == reverse("run", args=[run.pk])
    run.refresh_from_db()
    assert run.run_state is RunState.STOPPED
    client.post(reverse("resume-run", args=[run.pk]))
    run.refresh_from_db()
    assert run.run_state is RunState.QUEUED


def test_an_impossible_action_is_reported_not_done(client, cast):
    run = a_run(cast, RunState.FINISHED)
    client.force_login(cast.bob)
    response = client.post(reverse("stop-run", args=[run.pk]), follow=True)
    assert [str(m) for m in response.context["messages"]] == [
        "Nothing changed: a run that is finished cannot become stopping."
    ]


def test_a_run_page_shows_its_history_and_origin(client, cast):
    parent = a_run(cast)
    run = a_run(cast, parent=parent, parent_step=20, variant={"seed": 3})
    client.force_login(cast.bob)
    client.post(reverse("run-note", args=[run.pk]), {"text": "Entropy <falls>."})
    client.post(reverse("run-priority", args=[run.pk]), {"priority": "7"})
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "<p>Entropy &lt;falls&gt;.</p>" in page and "from 0 to 7" in page
    assert "Forked from step 20 of" in page and "seed = 3" in page
    for name, body in (("run-note", {"text": ""}), ("run-priority", {"priority": "1000"})):
        assert client.post(reverse(name, args=[run.pk]), body).status_code == 400


def launch_form(cast, **fields):
    return {"project": cast.project.pk, "recipe": "mars2", "name": "Try", "overrides": "", **fields}


def check(client, cast, **fields):
    return client.post(reverse("check-launch"), launch_form(cast, **fields)).json()


def test_the_form_starts_a_run(client, cast):
    client.force_login(cast.bob)
    fields = {"set:seed": 3, "set:training.steps": 4, "set:search.nodes_per_tree": 6}
    form = launch_form(cast, overrides="loss.kl_coefficient = 0.5\n# why not", **fields)
    response = client.post(reverse("launch"), form)
    run = Run.objects.get()
    assert response.url == reverse("run", args=[run.pk])
    assert run.seed == 3 and run.config["training"]["steps"] == 4
    assert run.config["search"]["nodes_per_tree"] == 6
    assert run.config["loss"]["kl_coefficient"] == 0.5


@pytest.mark.parametrize(
    "fields, path",
    [
        ({"set:search.nodes_per_tree": 0}, "search.nodes_per_tree"),
        ({"overrides": "agents.oak.optimizer.learning_rate = -1"}, "agents"),
        ({"overrides": "search.nodes = 4"}, "search.nodes"),
    ],
)
def test_settings_that_cannot_run_are_shown_with_their_path(client, cast, fields, path):
    client.force_login(cast.bob)
    response = client.post(reverse("launch"), launch_form(cast, **fields))
    assert response.status_code == 422 and not Run.objects.exists()
    assert response.context["problems"][0]["path"].startswith(path)


def test_a_line_that_is_no_setting_is_refused_by_the_form(client, cast):
    client.force_login(cast.bob)
    response = client.post(reverse("launch"), launch_form(cast, overrides="faster please"))
    assert response.status_code == 422 and "overrides" in response.context["form"].errors


def test_only_what_differs_from_the_recipe_is_stored(client, cast):
    client.force_login(cast.bob)
    page = client.get(reverse("launch"), {"recipe": "mars2"})
    shown = {s.path: s.shown for group in page.context["groups"] for s in group.settings}
    fields = {f"set:{path}": text for path, text in shown.items()}
    fields |= {"set:training.minutes": "2.5", "set:agents.first.role": "x"}
    form = launch_form(cast, **fields)
    client.post(reverse("launch"), form)
    run = Run.objects.get()
    assert run.experiment.config == {
        "recipe": "mars2",
        "overrides": {"training.minutes": 2.5, "agents.first.role": "x"},
    }


def test_every_setting_of_the_engine_has_its_field_with_help_and_range(client, cast):
    client.force_login(cast.bob)
    groups = client.get(reverse("launch"), {"recipe": "mars2"}).context["groups"]
    settings = {s.path: s for group in groups for s in group.settings}
    config = load_recipe("mars2").model_dump(mode="json")
    options = {
        f"{section}.{method}.{name}"
        for section in {one.section for one in REGISTRIES}
        for method, table in option_tables(section).items()
        for name in table.model_fields
    }
    assert "credit.adora.weight" in options
    assert set(settings) == (set(flat(config)) - {"recipe", "recipe_version"}) | options
    assert all(one.help for path, one in settings.items())
    assert settings["search.nodes_per_tree"].range == "from 1 to 5000, nodes"
    assert settings["sandbox.memory_mb"].range == "from 32 to 1048576, MB"
    assert settings["loss.policy"].choices == [
        "cispo", "flowrl", "gspo", "mixed_policy", "pacs", "ppo", "zvp",
    ]  # fmt: skip
    assert settings["training.minutes"].optional and not settings["training.steps"].optional


def test_the_preview_of_the_form_creates_nothing(client, cast):
    client.force_login(cast.bob)
    result = check(client, cast, overrides="[search]\nnodes_per_tree = 3", seeds="1-2",
                 sweep="loss.policy = ppo, gspo", preflight="1")  # fmt: skip
    assert result["problems"] == [] and result["runs"] == 4
    assert result["changes"] == {"search.nodes_per_tree": "3"}
    assert result["lines"] == "search.nodes_per_tree = 3"
    assert tomllib.loads(result["toml"])["search"]["nodes_per_tree"] == 3
    assert parse_config(tomllib.loads(result["toml"])).seed == 1
    marks = {one["what"]: one["mark"] for one in result["preflight"]}
    assert marks["Problems"] == "good" and marks["Time of a step"] == "unknown"
    assert not Run.objects.exists()


def test_the_form_takes_template_options_and_warns_of_a_loss_that_never_clips(client, cast):
    client.force_login(cast.bob)
    path = "agents.first.template_options"
    result = check(client, cast, overrides=f"[{path}]\nenable_thinking = false", preflight="1")
    assert result["problems"] == []
    assert result["changes"] == {path: "{ enable_thinking = false }"}
    assert tomllib.loads(result["toml"])["agents"][0]["template_options"] == {
        "enable_thinking": False
    }
    (problem,) = check(client, cast, overrides=f"{path}.x = [1]")["problems"]
    assert problem["path"] == path and "x = [1]: give a text" in problem["reason"]
    assert "Settings" not in {one["what"] for one in result["preflight"]}
    still = check(client, cast, overrides="training.minibatches = 1", preflight="1")["preflight"]
    assert [one["mark"] for one in still if one["what"] == "Settings"] == ["warning"]


def test_the_check_names_the_field_by_its_agent(client, cast):
    client.force_login(cast.bob)
    result = check(client, cast, overrides="agents.fern.optimizer.learning_rate = -1")
    assert result["problems"][0]["path"] == "agents.fern.optimizer.learning_rate"
    assert check(client, cast, seeds="3-1")["problems"][0]["path"] == "seeds"
    assert check(client, cast, source=str(uuid.uuid4()))["problems"][0]["path"] == "source"


def test_the_time_of_a_step_is_that_of_runs_of_the_same_shape(client, cast):
    config = load_recipe("mars2").model_dump(mode="json")
    a_run(cast, RunState.FINISHED, config=config, step=10, result={"training_seconds": 25.0})
    client.force_login(cast.bob)
    same = check(client, cast, preflight="1")["preflight"][-1]
    assert same["text"].startswith("about 2.5 s, as in 1 run of this shape")
    other = check(client, cast, overrides="search.nodes_per_tree = 3", preflight="1")
    assert other["preflight"][-1]["mark"] == "unknown"


def test_a_sweep_is_one_experiment_of_many_runs(client, cast):
    client.force_login(cast.bob)
    form = launch_form(cast, seeds="1, 2", sweep="search.nodes_per_tree = 4, 8")
    assert client.post(reverse("launch"), form).url == reverse("runs")
    runs = Run.objects.order_by("number")
    assert {run.experiment for run in runs} == {runs[0].experiment}
    assert [run.variant for run in runs] == [
        {"search.nodes_per_tree": nodes, "seed": seed} for nodes in (4, 8) for seed in (1, 2)
    ]
    assert [run.config["search"]["nodes_per_tree"] for run in runs] == [4, 4, 8, 8]
    listed = client.get(reverse("runs")).content.decode()
    assert listed.count("<code>search.nodes_per_tree = 8</code>") == 2


@pytest.mark.parametrize(
    "fields, path",
    [
        ({"seeds": "0-99"}, "seeds"),
        ({"seeds": "1", "overrides": "seed = 2"}, "seed"),
        ({"sweep": "search.nodes_per_tree = 4, 0"}, "search.nodes_per_tree"),
        ({"sweep": "search.nodes_per_tree = 4, 4"}, "search.nodes_per_tree"),
        ({"seeds": "1-9", "sweep": "training.steps = 1, 2, 3, 4, 5, 6, 7, 8"}, "sweep"),
    ],
)
def test_a_sweep_that_cannot_be_starts_nothing(client, cast, fields, path):
    client.force_login(cast.bob)
    response = client.post(reverse("launch"), launch_form(cast, **fields))
    assert response.status_code == 422 and not Run.objects.exists()
    assert response.context["problems"][0]["path"] == path


def test_a_clone_has_the_settings_of_the_run(client, cast):
    config = load_recipe("demo", {"training.minutes": None, "seed": 4}).model_dump(mode="json")
    source = a_run(cast, RunState.FINISHED, config=config)
    client.force_login(cast.bob)
    page = client.get(reverse("launch"), {"source": source.pk})
    assert b"Clone of Shade" in page.content
    client.post(reverse("launch"), {"project": cast.project.pk, "source": source.pk})
    clone = Run.objects.exclude(pk=source.pk).get()
    assert clone.config == config and clone.parent is None
    assert [(a.kind, a.user) for a in source.actions.all()] == [("cloned", cast.bob)]


def test_a_fork_starts_at_a_checkpoint_that_is_there(client, cast, var_directory):
    config = load_recipe("demo").model_dump(mode="json")
    source = a_run(cast, RunState.FINISHED, config=config)
    path = var_directory / "runs" / str(source.pk) / "checkpoints" / "step-000020"
    path.mkdir(parents=True)
    (path / "manifest.json").write_text("{}")
    client.force_login(cast.bob)
    form = {"project": cast.project.pk, "source": source.pk}
    response = client.post(reverse("launch"), {**form, "step": 10})
    assert (
        response.status_code == 422 and "there are 20" in response.context["problems"][0]["reason"]
    )
    refused = client.post(
        reverse("launch"), {**form, "step": 20, "overrides": 'agents.oak.model = "starter:fern"'}
    )
    assert [p["path"] for p in refused.context["problems"]] == ["agents.oak.model"]
    assert Run.objects.count() == 1
    client.post(reverse("launch"), {**form, "step": 20, "overrides": "loss.kl_coefficient = 0.5"})
    fork = Run.objects.exclude(pk=source.pk).get()
    assert (fork.parent, fork.parent_step) == (source, 20)
    held = var_directory / "runs" / str(fork.pk) / "origin" / "checkpoints" / path.name
    path.rename(path.with_name("partial-of-the-parent"))  # as its parent does to remove it
    assert (held / "manifest.json").read_text() == "{}", "the fork needs nothing of it any more"
    assert fork.config["loss"]["kl_coefficient"] == 0.5
    assert fork.experiment.name == f"{source.experiment.name}, from step 20"
    page = client.get(reverse("run", args=[fork.pk])).content.decode()
    assert "Forked from step 20" in page and "<code>loss.kl_coefficient = 0.5</code>" in page


def test_notes_in_the_history_are_markdown_without_scripts(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    client.post(reverse("run-note", args=[run.pk]), {"text": "**good** <script>x()</script>"})
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "<strong>good</strong>" in page and "<script>x()" not in page


def test_a_strangers_run_is_no_source(client, cast):
    source = a_run(cast)
    client.force_login(cast.charlie)
    page = client.get(reverse("launch"), {"source": source.pk})
    assert page.context["source"] is None and b"Shade" not in page.content


@pytest.mark.parametrize("who", ["vera", "charlie"])
def test_launching_requires_the_right_to_operate_the_project(client, cast, who):
    client.force_login(getattr(cast, who))
    assert client.post(reverse("launch"), launch_form(cast)).status_code == 422
    assert not Run.objects.exists()


def test_forms_need_their_token(cast):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.bob)
    response = client.post(reverse("stop-run", args=[a_run(cast).pk]))
    assert response.status_code == 403 and b"Reload the page" in response.content


def test_health_needs_no_account(client, db):
    assert client.get("/healthz").json() == {"status": "ok"}


def test_an_unknown_address_is_a_page_of_ours(client, cast):
    client.force_login(cast.bob)
    response = client.get("/nowhere/")
    assert response.status_code == 404 and "error.html" in [t.name for t in response.templates]


def test_every_page_keeps_foreign_code_out(client, cast):
    client.force_login(cast.bob)
    for page in PAGES:
        response = client.get(reverse(page))
        policy = response.headers["Content-Security-Policy"]
        nonce = re.search(r"'nonce-([\w-]+)'", policy)[1]
        assert "script-src 'self' 'nonce-" in policy and "style-src 'self';" in policy
        assert "unsafe" not in policy and "default-src 'none'" in policy
        inline = re.findall(rb"<script(?![^>]*\bsrc=)([^>]*)>", response.content)
        allowed = (b'type="application/json"', f'nonce="{nonce}"'.encode())
        assert all(any(sign in tag for sign in allowed) for tag in inline)
        assert not re.search(rb"<[^>]+\s(on\w+|style)=", response.content)
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_nonce_is_used_once(client, db):
    policies = {client.get("/healthz").headers["Content-Security-Policy"] for _ in range(3)}
    assert len(policies) == 3


def test_code_in_help_texts_is_shown_as_code():
    assert with_code("`a < b` of <c>; a ` alone") == (
        "<code>a &lt; b</code> of &lt;c&gt;; a ` alone"
    )
