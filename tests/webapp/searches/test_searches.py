"""Tests of searches at test time: created by form or REST, each a run of its own kind."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.urls import reverse

from engine.config.sandbox import SandboxConfig
from engine.policy.starters import STARTERS
from engine.problems.records import record
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify
from tests.helpers.builders import A_PROBLEM, Cast, a_model_directory, a_run, a_search, an_event
from tests.webapp.http.test_pages import page_json
from webapp.experiments.models import Run
from webapp.experiments.scheduling.leases import take_lease
from webapp.experiments.services import mark_starting
from webapp.registry.models import Model, ModelVersion
from webapp.registry.services import register_final_weights
from webapp.searches.launch.examples import EVEN_SQUARES, EXAMPLES
from webapp.searches.launch.presets import presets
from webapp.searches.launch.team import starters
from webapp.searches.models import Search
from webapp.searches.problems import Typed, typed_problem
from webapp.searches.services import SearchSpec, create_search
from webapp.sharing.services import create_share
from webapp.telemetry.ingest.ingest import ingest

FIRST = "public_tests[0]"
ANSWER = {
    "program": "def solve(x):\n    return sorted(x)\n",
    "agent": "oak",
    "rule": "latest",
    "passed": 1,
    "tests": 1,
    "private_passed": True,
    "ended": "solved",
    "nodes": 1,
    "tokens": 9,
    "seconds": 0.5,
    "reward": None,
}
SOLUTIONS = {
    "ascending-order": "def solve(x):\n    return sorted(x)\n",
    "even-squares": (
        "def even_squares(numbers):\n"
        "    return sum(number**2 for number in numbers if number % 2 == 0)\n"
    ),
    "longest-run": (
        "from itertools import groupby\n\n"
        "def longest_run(values):\n"
        "    return max((len(list(run)) for _, run in groupby(values)), default=0)\n"
    ),
    "missing-pages": (
        "def missing_pages(pages, last):\n"
        "    return [page for page in range(1, last + 1) if page not in pages]\n"
    ),
}
PASTED = {
    "team": ["starter:oak"],
    "source": "paste",
    "statement": "Write solve(x), which returns x doubled.",
    "entry_point": "solve",
    "public_tests": "assert solve(1) == 2\nassert solve(\n    2\n) == 4",
}


def form(cast: Cast, **fields):
    return {"project": cast.project.pk, **PASTED, **fields}


def checked_form(client, cast: Cast, **fields):
    """The check that the page shows next to the form."""
    return client.post(reverse("check-search"), {**form(cast, **fields), "preflight": 1}).json()


def test_a_pasted_problem_is_searched_by_the_team_with_the_settings_of_the_form(client, cast):
    client.force_login(cast.bob)
    changed = {"set:search.nodes_per_tree": "9", "overrides": "agents.oak.sampling.top_k = 3"}
    response = client.post(reverse("new-search"), form(cast, name="Doubling", **changed))
    search = Search.objects.get()
    assert response.url == reverse("run", args=[search.run_id])
    tests = [test["code"] for test in search.problem["public_tests"]]
    assert tests == ["assert solve(1) == 2", "assert solve(\n    2\n) == 4"]
    assert search.problem["private_tests"] == search.problem["public_tests"]
    config = search.run.config
    assert [agent["name"] for agent in config["agents"]] == ["oak"]
    assert config["agents"][0]["sampling"]["top_k"] == 3
    assert config["search"]["nodes_per_tree"] == 9 and config["search"]["stop_when_solved"]
    assert (search.run.state, search.run.created_by) == ("queued", cast.bob)
    assert search.run.actions.get().get_kind_display() == "started it"


@pytest.mark.parametrize(
    ("fields", "path", "reason"),
    [
        ({"team": []}, "team", "at least one"),
        ({"team": ["starter:birch"]}, "team", "no such model"),
        ({"team": ["registry:oak@champion"]}, "team", "no such model"),
        ({"team": ["hf:elms/oak@main"]}, "team", "downloads nothing from a Hugging Face hub"),
        ({"statement": " "}, "statement", "must be a text that is not empty"),
        ({"entry_point": "1x"}, "entry_point", "name of the function"),
        ({"public_tests": ""}, "public_tests", "give at least one test"),
        ({"public_tests": "[1"}, "public_tests", "is no JSON"),
        ({"public_tests": "[" * 9999}, "public_tests", "is nested too deeply"),
        ({"public_tests": '[{"arguments": 1, "expected": 2}]'}, f"{FIRST}.arguments", "list"),
        ({"public_tests": '[{"stdin": "1", "expected": "2"}]'}, FIRST, "empty entry_point"),
        ({"private_tests": "{}"}, "private_tests", "list of at least one test"),
        ({"public_tests": '[{"code": "assert \\u0000"}]'}, "public_tests", "cannot be stored"),
        ({"overrides": "search.rho = 2"}, "search.rho", "less than or equal to 1"),
        ({"source": "dataset"}, "version", "Choose a dataset"),
        ({"overrides": "agents.oak.model = /etc"}, "agents.oak.model", "are not accepted: write"),
    ],
)  # fmt: skip
def test_an_impossible_search_is_refused_by_its_field(client, cast, fields, path, reason):
    client.force_login(cast.alice)
    response = client.post(reverse("new-search"), form(cast, **fields))
    assert response.status_code == 422 and not Run.objects.exists()
    results = {problem["path"]: problem["reason"] for problem in response.context["problems"]}
    assert reason in results[path], results
    if "cannot be stored" not in reason:  # which shows only when it is stored
        assert path in [
            problem["path"] for problem in checked_form(client, cast, **fields)["problems"]
        ]


def test_the_form_shows_what_would_be_searched(client, cast):
    client.force_login(cast.alice)
    result = checked_form(client, cast, **{"set:search.seconds_per_tree": "30"})
    assert result["problems"] == [] and result["changes"] == {"search.seconds_per_tree": "30.0"}
    assert 'model = "starter:oak"' in result["toml"]
    marks = {finding["what"]: finding["text"] for finding in result["preflight"]}
    assert "2 public" in marks["Tests"] and "30 seconds" in marks["Budget"]
    assert Run.objects.count() == 0


def test_a_problem_of_a_dataset_is_searched_by_a_version_with_its_role(client, cast, tmp_path):
    trained = a_run(cast)
    trained.config["agents"][0] |= {"role": "You plant trees."}
    trained.save()
    (version,) = register_final_weights(trained, 4, {"oak": a_model_directory(tmp_path / "oak")})
    known = a_search(cast).run.dataset_version
    client.force_login(cast.alice)
    page = client.get(reverse("new-search"))
    assert f"registry:oak@{version.number}" in [choice.key for choice in page.context["choices"]]
    offered = client.get(reverse("search-problems", args=[known.pk])).json()["problems"]
    assert len(offered) == 3 and offered[0]["statement"]
    requested = form(
        cast,
        team=["starter:oak", "registry:oak@v1"],
        source="dataset",
        version=known.pk,
        problem=offered[1]["id"],
    )
    assert client.post(reverse("new-search"), requested).status_code == 302
    search = Search.objects.latest("pk")
    assert search.problem["id"] == offered[1]["id"] and search.run.dataset_version == known
    one, other = search.run.config["agents"]
    assert (one["name"], other["name"]) == ("oak", "oak-2")
    assert (other["role"], other["model"]) == ("You plant trees.", version.path)
    assert search.run.model_uses.get(agent="oak-2").version == version
    wrong = {**requested, "problem": "none"}
    assert "no such problem" in client.post(reverse("new-search"), wrong).content.decode()


def started_as_offered(client, cast) -> Search:
    """The search that the page's form starts if submitted unchanged."""
    page = client.get(reverse("new-search")).context
    shown = {name: page["form"][name].value() or "" for name in page["form"].fields}
    requested = {
        **shown,
        "project": cast.project.pk,
        "team": page["chosen"],
        "source": page["source"],
    }
    assert client.post(reverse("new-search"), requested).status_code == 302
    return Search.objects.latest("pk")


def test_the_page_begins_with_the_newest_trained_versions_and_a_problem_that_exists(
    client, cast, tmp_path
):
    known = a_search(cast).run.dataset_version
    run, models = (
        a_run(cast),
        {name: a_model_directory(tmp_path / name) for name in ("oak", "fern")},
    )
    register_final_weights(run, 4, models)
    register_final_weights(a_run(cast, number=2), 8, {"oak": models["oak"]})
    client.force_login(cast.alice)
    search = started_as_offered(client, cast)
    assert search.run.dataset_version == known and search.problem["statement"]
    uses = {
        use.agent: use.version.number for use in search.run.model_uses.select_related("version")
    }
    assert uses == {"oak": 2}


def test_without_dataset_and_versions_it_begins_with_the_starters_and_an_example(client, cast):
    client.force_login(cast.alice)
    search = started_as_offered(client, cast)
    assert search.problem["entry_point"] == "solve"
    assert [agent["model"] for agent in search.run.config["agents"]] == [
        "starter:oak",
        "starter:fern",
    ]


def a_pretrained_model(cast, path, **fields):
    """A version that no run made, as an import registers it."""
    model = Model.objects.create(project=cast.project, name="smollm2-135m")
    known = {"path": str(a_model_directory(path)), "parameters": 134_515_008, "sha256": "b" * 64}
    return ModelVersion.objects.create(model=model, number=1, **(known | fields))


def test_every_starter_can_be_a_member_and_the_demo_s_are_the_preset(client, cast):
    client.force_login(cast.bob)
    assert sorted(starters()) == sorted(f"starter:{name}" for name in STARTERS)
    (preset,) = presets(cast.project)
    assert (preset.key, preset.team) == ("starters", ["starter:oak", "starter:fern"])
    page = client.get(reverse("new-search")).content.decode()
    assert all(f'value="starter:{name}"' in page for name in STARTERS)
    team = ["starter:rowan", "starter:ash"]
    search = create_search(cast.project, cast.bob, SearchSpec(team, A_PROBLEM))
    agents = search.run.config["agents"]
    assert [agent["model"] for agent in agents] == team
    assert {agent["sampling"]["max_new_tokens"] for agent in agents} == {32}


def test_a_pretrained_model_is_a_team_of_two_roles_by_one_click(client, cast, tmp_path):
    version = a_pretrained_model(cast, tmp_path / "smollm2")
    client.force_login(cast.alice)
    page = client.get(reverse("new-search"), {"project": cast.project.pk})
    labels = {one.label: query for one, query in page.context["presets"]}
    assert list(labels) == ["Starters", f"{version} in two roles"]
    chosen = client.get(f"{reverse('new-search')}?{labels[f'{version} in two roles']}")
    team = [f"registry:smollm2-135m@1#{role}" for role in ("writer", "checker")]
    assert chosen.context["chosen"] == team and chosen.context["source"] == "paste"
    assert set(team) <= {choice.key for choice in chosen.context["choices"]}
    assert chosen.context["form"]["entry_point"].value() == "even_squares"
    pasted = {name: chosen.context["form"][name].value() or "" for name in EVEN_SQUARES.fields}
    assert pasted == EVEN_SQUARES.fields
    requested = form(cast, **pasted, team=team)
    assert client.post(reverse("new-search"), requested).status_code == 302
    search = Search.objects.get()
    one, other = search.run.config["agents"]
    assert [one["name"], other["name"]] == ["smollm2-135m-writer", "smollm2-135m-checker"]
    assert one["model"] == other["model"] == version.path
    assert one["role"] != other["role"] and one["sampling"]["max_new_tokens"] == 256
    assert search.run.model_uses.count() == 2


@pytest.mark.parametrize("fields", [{"parameters": 4_000_000}, {"metadata": {"starter": "oak"}}])
def test_small_models_and_starters_have_no_roles_to_choose(client, cast, tmp_path, fields):
    a_pretrained_model(cast, tmp_path / "m", **fields)
    client.force_login(cast.alice)
    page = client.get(reverse("new-search"), {"project": cast.project.pk, "preset": "none"})
    assert [one.label for one, _ in page.context["presets"]] == ["Starters"]
    assert not [one.key for one in page.context["choices"] if "#" in one.key]


def test_an_unknown_role_is_refused(client, cast, tmp_path):
    a_pretrained_model(cast, tmp_path / "m")
    client.force_login(cast.alice)
    requested = form(cast, team=["registry:smollm2-135m@1#poet"])
    response = client.post(reverse("new-search"), requested)
    assert response.status_code == 422 and "no such model" in response.content.decode()
    assert not Search.objects.exists()


def test_every_example_is_a_problem_that_can_be_judged():
    programs = [
        (typed_problem(Typed(**one.fields)), program)
        for one in EXAMPLES
        for program in (SOLUTIONS[one.name], f"def {one.fields['entry_point']}(*x): return x")
    ]
    with Sandbox(SandboxConfig(workers=1)) as sandbox:
        passed = [verification.passed for verification in verify(sandbox, programs)]
    assert passed == [True, False] * len(EXAMPLES)


def answered(search: Search) -> Run:
    """The search's run after an engine has reported its answer."""
    fencing = take_lease(search.run_id, "worker", 60)
    mark_starting(search.run_id, fencing)
    opened = {"step": 1, "problem": "sort", "statement": "s"}
    events = [
        an_event(1, "tree.open", tree=1, **opened),
        an_event(2, "search.answer", tree=1, node=1, **ANSWER),
    ]
    ingest(search.run_id, fencing, events)
    return Run.objects.get(pk=search.run_id)


def test_lists_show_a_search_with_its_answer_and_leave_it_out_of_what_trains(client, cast):
    search, other = a_search(cast), a_run(cast)
    answered(search)
    client.force_login(cast.vera)
    page = client.get(reverse("searches")).content.decode()
    assert "1 of 1 public tests, by oak" in page and "Sort" in page and str(other) not in page
    assert [run.pk for run in client.get(reverse("runs")).context["runs"]] == [other.pk]
    listed = client.get("/api/v1/runs").json()["runs"]
    assert [run["id"] for run in listed] == [str(other.pk)]
    client.force_login(cast.alice)
    refused = client.post(f"/api/v1/runs/{search.run_id}/clone", content_type="application/json")
    assert refused.status_code == 409 and "trains nothing" in refused.content.decode()


def test_the_page_of_a_search_shows_the_count_of_tests_and_no_test(client, cast):
    search = a_search(cast)
    client.force_login(cast.vera)
    response = client.get(reverse("run", args=[search.run_id]))
    shown = page_json(response)["search"]
    assert (shown["public_tests"], shown["private_tests"]) == (1, 1)
    assert shown["budget"] == {"nodes": 24, "tokens": None, "seconds": None}
    assert "2, 2, 1" not in response.content.decode()
    assert page_json(client.get(reverse("run", args=[a_run(cast).pk])))["search"] is None


def test_a_guest_sees_a_shared_search_without_its_team_s_sources(client, cast):
    search = a_search(cast)
    answered(search)
    _, link = create_share(Run.objects.get(pk=search.run_id), cast.alice, timedelta(days=1))
    response = client.get(link)
    shown = page_json(response)
    assert shown["search"]["budget"]["nodes"] == 24 and shown["agents"][0]["model"] == "oak"
    page = response.content.decode()
    for what in ("log", "shares"):
        assert reverse(what, args=[search.run_id]) not in page
    assert "Search again" in page and "All charts" not in page


def test_rest_creates_searches_once_and_returns_their_answers(client, cast):
    client.force_login(cast.bob)
    where = f"/api/v1/projects/{cast.project.pk}/searches"
    requested = {"team": ["starter:oak"], "problem": record(A_PROBLEM), "name": "Night"}
    headers = {"Idempotency-Key": "night-1"}

    def post(body, **more):
        return client.post(where, json.dumps(body), "application/json", **more)

    made, again = post(requested, headers=headers), post(requested, headers=headers)
    assert made.status_code == 201 and made.json()["id"] == again.json()["id"]
    assert (made.json()["problem"], made.json()["answer"]) == ("sort", None)
    search = Search.objects.get()
    assert client.get(f"/api/v1/searches/{search.run_id}/answer").json() is None
    answered(search)
    (listed,) = client.get(where).json()["searches"]
    assert listed["answer"]["private_passed"] is True and listed["state"] == "starting"
    answer = client.get(f"/api/v1/searches/{search.run_id}/answer").json()
    assert (answer["node"], answer["program"]) == (1, ANSWER["program"])
    for body, path in [
        ({"team": ["starter:oak"]}, "problem"),
        ({**requested, "dataset_version": 1}, "problem"),
        ({"team": ["starter:oak"], "dataset_version": 2**40, "problem_id": "x"}, "dataset_version"),
        ({**requested, "problem": {"id": "x"}}, "statement"),
    ]:
        refused = post(body)
        assert refused.status_code == (404 if path == "dataset_version" else 422)
        assert path in [one["path"] for one in refused.json()["problems"]]
