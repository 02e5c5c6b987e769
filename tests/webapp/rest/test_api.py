"""Tests of REST: the response to each of the cast, and the form of refusals."""

import uuid

import pytest
from django.test import Client

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_held_run, a_run, an_event
from webapp.accounts.models import User
from webapp.datasets.models import Dataset
from webapp.experiments.models import Run
from webapp.projects.services import create_project, create_workspace
from webapp.registry.models import Model
from webapp.registry.services import register_starters
from webapp.telemetry.ingest.ingest import ingest


def post(client, path, body=None):
    return client.post(f"/api/v1{path}", body, content_type="application/json")


def new_run(cast, **fields):
    return {"project": cast.project.pk, "recipe": "mars2", "name": "Try", **fields}


def of_a_run(run):
    """(method, path) of every operation on one run."""
    base = f"/runs/{run.pk}"
    return [
        ("get", base),
        ("get", f"{base}/state"),
        ("get", f"{base}/events"),
        ("get", f"{base}/trees/1/nodes/1"),
        ("post", f"{base}/stop"),
        ("post", f"{base}/resume"),
    ]


def test_lists_hold_ones_own_things_only(client, cast, tmp_path):
    from tests.helpers.builders import a_model_directory

    run = a_run(cast)
    register_starters(cast.project, {"oak": a_model_directory(tmp_path / "oak")}, {"seed": 1})
    client.force_login(cast.bob)
    assert [r["id"] for r in client.get("/api/v1/runs").json()["runs"]] == [str(run.pk)]
    assert client.get("/api/v1/models").json()["models"][0]["versions"][0]["parameters"] == 6
    client.force_login(cast.charlie)
    assert client.get("/api/v1/runs").json() == {"runs": [], "next": None}
    assert client.get("/api/v1/models").json() == {"models": [], "next": None}
    assert client.get("/api/v1/datasets").json() == {"datasets": [], "next": None}


def test_a_run_is_made_from_a_recipe_and_overrides(client, cast):
    client.force_login(cast.bob)
    response = post(client, "/runs", new_run(cast, overrides={"training.steps": 3}))
    assert response.status_code == 201
    detail = response.json()
    assert detail["state"] == "queued" and detail["created_by"] == "bob" and detail["steps"] == 3
    assert client.get(f"/api/v1/runs/{detail['id']}").json() == detail
    assert client.get("/api/v1/datasets").json()["datasets"][0]["name"] == "generated"


@pytest.mark.parametrize(
    "overrides, path, value",
    [
        ({"search.nodes_per_tree": 0}, "search.nodes_per_tree", 0),
        ({"loss.policy": "nope"}, "loss.policy", "nope"),
        ({"search.nodes": 1}, "search.nodes", 1),
        ({"problems.dataset": "/nowhere.jsonl"}, "problems.dataset", "/nowhere.jsonl"),
    ],
)
def test_settings_that_cannot_run_are_named(client, cast, overrides, path, value):
    client.force_login(cast.bob)
    response = post(client, "/runs", new_run(cast, overrides=overrides))
    assert response.status_code == 422
    assert response.headers["Content-Type"] == "application/problem+json"
    fault = response.json()["problems"][0]
    assert (fault["path"], fault["value"]) == (path, value) and fault["reason"]


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("agents.0.model", "models pull hf:elms/oak@main DIR, then grove push-model DIR"),
        ("problems.dataset", "problems pull hf:elms/oak@main DIR, then grove push-dataset"),
    ],
)
def test_a_reference_to_a_hub_is_refused_with_the_way_in(client, cast, path, remedy):
    client.force_login(cast.bob)
    response = post(client, "/runs", new_run(cast, overrides={path: "hf:elms/oak@main"}))
    (problem,) = response.json()["problems"]
    assert response.status_code == 422 and problem["path"] == path and remedy in problem["reason"]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "overrides",
    [
        {"search.nodes_per_tree": 4, "search.nodes_in_flight": 5},
        {"agents.nobody.role": "x"},
        {"problems.dataset": "dataset:none/1"},
        {"agents.0.model": "registry:none@1"},
    ],
)
def test_possible_settings_that_do_not_fit_are_a_conflict(client, cast, overrides):
    client.force_login(cast.bob)
    for path, body in (("/runs", {}), ("/experiments", {}), ("/experiments/check", {})):
        response = post(client, path, new_run(cast, overrides=overrides, **body))
        assert response.status_code == 409, response.content
        assert response.json()["problems"][0]["reason"]
    assert not Run.objects.exists()


@pytest.mark.parametrize("value", ["8", True, 8.5, [8]])
def test_a_setting_takes_a_value_of_its_own_type(client, cast, value):
    client.force_login(cast.bob)
    response = post(client, "/runs", new_run(cast, overrides={"search.nodes_per_tree": value}))
    assert response.status_code == 422
    assert response.json()["problems"][0]["path"] == "search.nodes_per_tree"
    made = post(client, "/runs", new_run(cast, overrides={"search.nodes_per_tree": 8.0}))
    assert made.json()["config"]["search"]["nodes_per_tree"] == 8


@pytest.mark.parametrize(
    "method, address, body, path, value",
    [
        ("get", "runs?limit=many", None, "limit", "many"),
        ("get", "comparison?run=zz", None, "run.0", "zz"),
        ("post", "runs", {"recipe": "demo", "project": "x"}, "project", "x"),
        ("post", "runs", {"project": 1}, "recipe", None),
        ("post", "runs", {"recipe": "demo", "project": 1, "colour": "red"}, "colour", "red"),
        ("post", "runs", ["demo"], "body", "..."),
    ],
)
def test_a_refusal_names_what_was_sent_where_it_was_written(
    cast, client, method, address, body, path, value
):
    client.force_login(cast.bob)
    sent = {"data": body, "content_type": "application/json"} if body is not None else {}
    response = getattr(client, method)(f"/api/v1/{address}", **sent)
    (problem,) = response.json()["problems"]
    assert response.status_code == 422 and problem["reason"]
    assert (problem["path"], problem["value"]) == (path, value)
    assert not Run.objects.exists()


def test_an_unknown_recipe_or_field_is_named(client, cast):
    client.force_login(cast.bob)
    recipe = post(client, "/runs", new_run(cast, recipe="nope")).json()
    assert recipe["problems"][0]["path"] == "recipe"
    field = post(client, "/runs", new_run(cast, recipee="mars2"))
    assert field.status_code == 422
    assert field.json()["problems"][0]["path"].endswith("recipee")


@pytest.mark.parametrize("who, status", [("vera", 403), ("charlie", 404)])
def test_creating_runs_requires_the_right_to_operate_the_project(client, cast, who, status):
    client.force_login(getattr(cast, who))
    assert post(client, "/runs", new_run(cast)).status_code == status
    assert not Run.objects.exists()


def test_a_stranger_gets_not_found_for_a_run(client, cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(1, "node.open", tree=1, node=1, parent=0)])
    client.force_login(cast.charlie)
    for method, path in of_a_run(run):
        theirs = getattr(client, method)(f"/api/v1{path}")
        nothing = getattr(client, method)(f"/api/v1{path.replace(str(run.pk), str(uuid.uuid4()))}")
        assert theirs.status_code == nothing.status_code == 404, path
        assert theirs.json() == nothing.json()


def test_a_viewer_reads_but_does_not_operate(client, cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, [an_event(1, "node.open", tree=1, node=1, parent=0)])
    client.force_login(cast.vera)
    for method, path in of_a_run(run):
        expected = 200 if method == "get" else 403
        assert getattr(client, method)(f"/api/v1{path}").status_code == expected, path


def test_reading_requires_signing_in(client, cast):
    run = a_run(cast)
    paths = [path for _, path in of_a_run(run)]
    for path in ["/runs", "/recipes", "/models", "/datasets", *paths]:
        method = client.post if path.endswith(("stop", "resume")) else client.get
        response = method(f"/api/v1{path}")
        assert response.status_code == 401, path
        assert response.json()["title"] == "Unauthorized"


def test_a_program_without_a_token_has_to_sign_in(db):
    response = Client(enforce_csrf_checks=True).post("/api/v1/runs/tracked", {}, "application/json")
    assert response.status_code == 401
    assert "send a token" in response.json()["detail"]


def test_a_change_needs_the_csrf_token(cast):
    run = a_run(cast)
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.bob)
    assert client.post(f"/api/v1/runs/{run.pk}/stop").status_code == 403
    run.refresh_from_db()
    assert run.run_state is RunState.QUEUED


def test_stop_and_resume_answer_the_run(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    assert post(client, f"/runs/{run.pk}/stop").json()["state"] == "stopped"
    assert post(client, f"/runs/{run.pk}/resume").json()["state"] == "queued"


def test_a_run_action_is_recorded_with_its_user(client, cast):
    run = a_run(cast)
    client.force_login(cast.bob)
    assert post(client, f"/runs/{run.pk}/priority", {"priority": 4}).json()["priority"] == 4
    post(client, f"/runs/{run.pk}/notes", {"text": "Slow."})
    assert post(client, f"/runs/{run.pk}/kill").json()["state"] == "stopped"
    actions = client.get(f"/api/v1/runs/{run.pk}/actions").json()["actions"]
    assert [(one["kind"], one["user"], one["detail"]) for one in actions] == [
        ("killed", "bob", ""), ("note", "bob", "Slow."), ("priority", "bob", "from 0 to 4"),
    ]  # fmt: skip


def test_an_experiment_holds_a_run_for_every_seed_and_value(client, cast):
    client.force_login(cast.bob)
    expected = new_run(cast, seeds=[1, 2], sweep={"loss.policy": ["ppo", "gspo"]})
    key = {"Idempotency-Key": "sweep-1"}
    first, again = (
        client.post("/api/v1/experiments", expected, "application/json", headers=key)
        for _ in range(2)
    )
    assert first.status_code == 201 and first.json() == again.json()
    results = [(run["seed"], run["variant"]["loss.policy"]) for run in first.json()["runs"]]
    assert results == [(1, "ppo"), (2, "ppo"), (1, "gspo"), (2, "gspo")]
    assert Run.objects.count() == 4


def test_a_clone_and_a_fork_are_runs_of_their_own(client, cast, var_directory):
    client.force_login(cast.bob)
    made = post(client, "/runs", new_run(cast, overrides={"training.steps": 3})).json()
    source = Run.objects.get(pk=made["id"])
    clone = post(client, f"/runs/{made['id']}/clone")
    assert clone.status_code == 201 and clone.json()["config"] == made["config"]
    path = var_directory / "runs" / made["id"] / "checkpoints" / "step-000002"
    path.mkdir(parents=True)
    (path / "manifest.json").write_text("{}")
    assert client.get(f"/api/v1/runs/{made['id']}/checkpoints").json() == {"steps": [2]}
    address = f"/runs/{made['id']}/fork"
    fork = post(client, address, {"step": 2, "overrides": {"training.steps": 9}}).json()
    assert (fork["parent"], fork["parent_step"], fork["steps"]) == (made["id"], 2, 9)
    removed = post(client, address, {"step": 1})
    assert removed.status_code == 409 and removed.json()["problems"][0]["path"] == "step"
    first = source.config["agents"][0]["name"]
    changed = {"step": 2, "overrides": {f"agents.{first}.model": "starter:fern",
                                        "compute.dtype": "float32"}}  # fmt: skip
    paths = {problem["path"] for problem in post(client, address, changed).json()["problems"]}
    assert paths == {"agents.0.model", "compute.dtype"}


def test_an_action_impossible_in_the_current_state_is_a_conflict(client, cast):
    run = a_run(cast, RunState.FINISHED)
    client.force_login(cast.bob)
    response = post(client, f"/runs/{run.pk}/resume")
    assert response.status_code == 409
    assert "finished cannot become queued" in response.json()["detail"]


def test_the_list_is_paged_and_filtered(client, cast):
    made = {str(a_run(cast).pk) for _ in range(5)}
    a_run(cast, RunState.FAILED)
    client.force_login(cast.bob)
    seen, cursor = [], ""
    while cursor is not None:
        query = {"limit": 2, "state": "queued", **({"cursor": cursor} if cursor else {})}
        page = client.get("/api/v1/runs", query).json()
        seen += [run["id"] for run in page["runs"]]
        cursor = page["next"]
    assert len(seen) == 5 and set(seen) == made


@pytest.mark.parametrize("name", ["projects", "workspaces", "models", "datasets"])
def test_every_list_is_walked_page_by_page(client, cast, name):
    for number in range(4):
        workspace = create_workspace(f"Team {number}", f"team-{number}", cast.bob)
        project = create_project(workspace, "Elms", "elms")
        Model.objects.create(project=project, name="oak")
        Dataset.objects.create(project=project, name="leaves")
    client.force_login(cast.bob)
    whole = [one["id"] for one in client.get(f"/api/v1/{name}").json()[name]]
    seen, query = [], {"limit": 2}
    while query.get("cursor", 0) is not None:
        page = client.get(f"/api/v1/{name}", query).json()
        seen += [one["id"] for one in page[name]]
        query["cursor"] = page["next"]
    assert len(seen) >= 4 and seen == whole == sorted(whole)


@pytest.mark.parametrize("query", ["cursor=x", "limit=0", "limit=201", "state=gone"])
def test_a_bad_parameter_is_named(client, cast, query):
    client.force_login(cast.bob)
    response = client.get(f"/api/v1/runs?{query}")
    assert response.status_code == 422
    assert response.json()["problems"][0]["path"].endswith(query.partition("=")[0])


def test_recipes_are_listed_with_their_settings(client, cast):
    client.force_login(cast.bob)
    recipes = {r["name"]: r["config"] for r in client.get("/api/v1/recipes").json()}
    assert recipes["mars2"]["agents"]


def test_the_schema_is_complete_and_loads_nothing_foreign(client, cast):
    client.force_login(cast.bob)
    schema = client.get("/api/v1/openapi.json").json()
    assert "/api/v1/runs/{run_id}/trees/{tree}/nodes/{node}" in schema["paths"]
    assert client.get("/api/v1/docs").status_code == 404


def test_the_same_request_under_the_same_key_makes_one_run(client, cast):
    client.force_login(cast.bob)
    key = {"Idempotency-Key": "night-7"}

    def ask(**fields):
        body = new_run(cast, overrides={"training.steps": 3}, **fields)
        return client.post("/api/v1/runs", body, "application/json", headers=key)

    first, again = ask(), ask()
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json() and Run.objects.count() == 1
    other = ask(recipe="demo")
    assert other.status_code == 409
    assert other.json()["problems"][0]["path"] == "Idempotency-Key"
    client.force_login(cast.alice)
    assert ask().json()["id"] != first.json()["id"], "a key is of one person"


def test_a_refused_request_does_not_spend_its_key(client, cast):
    client.force_login(cast.bob)
    key = {"Idempotency-Key": "night-8"}
    bad = new_run(cast, overrides={"training.steps": -1})
    statuses = [
        client.post("/api/v1/runs", body, "application/json", headers=key).status_code
        for body in (bad, new_run(cast))
    ]
    assert statuses == [422, 201]


def test_an_experiment_begins_with_a_run_as_the_page_does(client, cast, var_directory):
    client.force_login(cast.bob)
    source = post(client, "/runs", new_run(cast, overrides={"training.steps": 3})).json()
    place = var_directory / "runs" / source["id"] / "checkpoints" / "step-000002"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    expected = {"project": cast.project.pk, "source": source["id"], "seeds": [5, 6]}
    plan = post(client, "/experiments/check", expected).json()
    assert [(run["seed"], run["steps"]) for run in plan["runs"]] == [(5, 3), (6, 3)]
    assert "steps = 3" in plan["toml"] and "Problems" in {one["what"] for one in plan["preflight"]}
    one_step = {**expected, "overrides": {"training.minibatches": 1}}
    found = post(client, "/experiments/check", one_step).json()["preflight"]
    (warning,) = [one for one in found if one["mark"] == "warning"]
    assert warning["what"] == "Settings" and "training.minibatches = 1: " in warning["text"]
    assert Run.objects.count() == 1, "nothing is made"
    forks = post(client, "/experiments", {**expected, "step": 2}).json()["runs"]
    assert {(run["parent"], run["parent_step"]) for run in forks} == {(source["id"], 2)}
    actions = client.get(f"/api/v1/runs/{source['id']}/actions").json()["actions"]
    assert actions[0]["kind"] == "forked" and "from step 2" in actions[0]["detail"]
    for bad, path in (
        ({"recipe": "mars2"}, "recipe"),
        ({"source": None}, "recipe"),
        ({"source": None, "recipe": "mars2", "step": 2}, "step"),
        ({"source": str(uuid.uuid4())}, "source"),
        ({"step": 9}, "step"),
    ):
        refused = post(client, "/experiments/check", {**expected, **bad})
        status = {"source": 404, "step": 409 if bad == {"step": 9} else 422}.get(path, 422)
        assert refused.status_code == status, bad
        assert refused.json()["problems"][0]["path"] == path, bad


def test_rest_returns_presets_and_settings_of_the_form(client, cast):
    client.force_login(cast.bob)
    presets = client.get("/api/v1/recipes/presets").json()
    for preset in presets:
        expected = new_run(cast, overrides=preset["overrides"])
        assert post(client, "/experiments/check", expected).status_code == 200, preset["name"]
    groups = client.get("/api/v1/recipes/mars2/settings").json()
    known = {one["path"]: one for group in groups for one in group["settings"]}
    assert {path for one in presets for path in one["overrides"]} <= known.keys()
    nodes = known["search.nodes_per_tree"]
    assert nodes["help"] and nodes["range"] and int(nodes["value"]) > 0
    assert client.get("/api/v1/recipes/none/settings").status_code == 404


def test_an_invitation_is_accepted_by_rest(client, cast):
    client.force_login(cast.alice)
    made = post(
        client, f"/workspaces/{cast.project.workspace.slug}/invitations", {"role": "viewer"}
    )
    token = made.json()["link"].rstrip("/").rsplit("/", 1)[1]
    client.force_login(cast.charlie)
    joined = post(client, "/invitations/accept", {"token": token})
    assert joined.status_code == 200 and joined.json()["id"] == cast.project.workspace_id
    assert client.get(f"/api/v1/projects/{cast.project.pk}").status_code == 200
    client.force_login(User.objects.create_user("dora"))
    spent = post(client, "/invitations/accept", {"token": token})
    assert spent.status_code == 404 and spent.json()["problems"][0]["path"] == "token"
    assert token not in spent.content.decode()


def test_a_body_that_is_no_json_is_refused_with_what_to_send(client, cast):
    client.force_login(cast.bob)
    for body, kind in (("{", "application/json"), ("project=1", "text/plain")):
        refused = client.post("/api/v1/runs", body, content_type=kind)
        (problem,) = refused.json()["problems"]
        assert (
            refused.status_code == 400 and problem["path"] == "body" and "JSON" in problem["reason"]
        )
