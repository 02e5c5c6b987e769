"""Tests that no path or address enters by browser or REST, through any route of settings.

Each case runs for every field that `engine.config.locations` marks, with a file that only the
server's account may read: it fails as soon as one field or one route is forgotten.
"""

import json

import pytest
from django.urls import reverse

from engine.config.errors import ConfigError
from engine.config.locations import Kind, locations
from engine.config.schema import RunConfig
from engine.events.vocabulary import RunState
from engine.problems.records import record
from engine.recipes import load_recipe
from engine.sandbox.limits import SandboxCaps
from tests.engine.config.test_locations import MARKED
from tests.helpers.builders import A_PROBLEM, a_run
from tests.helpers.large import large_but
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.experiments.models import Run
from webapp.experiments.run_settings.paths import RULES, refuse_foreign

FIELDS = [path.replace("*", "0") for path in MARKED]


@pytest.fixture
def secret(tmp_path):
    """Plain text, like a key; each of the fields is set to its path."""
    file = tmp_path / "secret.jinja"
    file.write_text("{{ 'the secret' }}")
    file.chmod(0o600)
    return str(file)


@pytest.fixture
def bob(client, cast):
    client.force_login(cast.bob)
    return client


def post(client, where, body):
    return client.post(f"/api/v1{where}", json.dumps(body), "application/json")


def a_source(cast, var_directory, **fields):
    """A finished run with a checkpoint of step 20."""
    config = load_recipe("demo").model_dump(mode="json")
    source = a_run(cast, RunState.FINISHED, **{"config": config, **fields})
    path = var_directory / "runs" / str(source.pk) / "checkpoints" / "step-000020"
    path.mkdir(parents=True)
    (path / "manifest.json").write_text("{}")
    return source


def refused(response, path):
    """Asserts a refusal with an error on this field, by any name that the page uses for its
    agent."""
    assert response.status_code == 422, response.content[:500]
    found = response.json()["problems"] if "json" in response["content-type"] else None
    found = response.context["problems"] if found is None else found
    last = path.rpartition(".")[2]
    assert last in [problem["path"].rpartition(".")[2] for problem in found], found
    return True


@pytest.mark.parametrize("path", FIELDS)
def test_no_operation_of_rest_takes_it(bob, cast, secret, var_directory, path):
    source, project = a_source(cast, var_directory), cast.project.pk
    agents = load_recipe("demo").model_dump(mode="json")["agents"]
    ways = [{"overrides": {path: secret}}, {"sweep": {path: [secret, f"{secret}x"]}}]
    if path.startswith("agents.0."):
        agents[0][path.removeprefix("agents.0.")] = secret
        ways.append({"overrides": {"agents": agents}})
        ways.append({"overrides": {path.replace(".0.", ".oak."): secret}})
    for way in ways:
        for base in ({"recipe": "demo"}, {"source": str(source.pk)},
                     {"source": str(source.pk), "step": 20}):  # fmt: skip
            requested = {"project": project, **base, **way}
            assert refused(post(bob, "/experiments", requested), path)
            assert refused(post(bob, "/experiments/check", requested), path)
        if "overrides" in way:
            new = {"project": project, "recipe": "demo", **way}
            assert refused(post(bob, "/runs", new), path)
            assert refused(post(bob, f"/runs/{source.pk}/fork", {"step": 20, **way}), path)
    search = {"team": ["starter:oak"], "problem": record(A_PROBLEM), "overrides": {path: secret}}
    assert refused(post(bob, f"/projects/{project}/searches", search), path)
    assert list(Run.objects.all()) == [source]


@pytest.mark.parametrize("path", large_but(list(FIELDS)[:1], FIELDS))
def test_no_form_takes_it(bob, cast, secret, var_directory, path):
    source = a_source(cast, var_directory)
    named = path.replace("agents.0.", "agents.oak.")
    line = {"overrides": f'{named} = "{secret}"'}
    ways = [line, {f"set:{named}": secret}, {"sweep": f"{named} = {secret}, {secret}x"}]
    form = {"project": cast.project.pk, "name": "Try"}
    for way in ways:
        for base in ({"recipe": "demo"}, {"source": source.pk}, {"source": source.pk, "step": 20}):
            requested = {**form, "overrides": "", **base, **way}
            assert refused(bob.post(reverse("launch"), requested), path)
            reply = bob.post(reverse("check-launch"), {**requested, "preflight": 1}).json()
            assert reply["problems"] and reply["preflight"] is None and not reply["toml"]
    search = {
        **form, "team": ["starter:oak"], "source": "paste", "statement": "Double x.",
        "entry_point": "solve", "public_tests": "assert solve(1) == 2",
    }  # fmt: skip
    assert refused(bob.post(reverse("new-search"), search | line), path)
    assert list(Run.objects.all()) == [source]


@pytest.mark.parametrize("path", large_but(list(FIELDS)[:1], FIELDS))
def test_settings_of_an_engine_elsewhere_are_no_base(bob, cast, secret, var_directory, path):
    """A member wrote them: neither clone nor fork treats a path in them as one of ours."""
    given = {path: secret}
    new = {"project": cast.project.pk, "recipe": "demo", "outside": True, "overrides": given}
    sent = post(bob, "/runs", new)
    if path in ("compute.ray_address", "judge.model"):
        assert refused(sent, path) and not Run.objects.exists()
    else:
        assert sent.status_code == 201  # its record says where that engine has its files
    config = load_recipe("demo", given).model_dump(mode="json")
    source = a_source(cast, var_directory, outside=True, config=config)
    present = set(Run.objects.all())
    from_it = {"project": cast.project.pk, "source": str(source.pk)}
    for requested in (from_it, {**from_it, "step": 20}, {**from_it, "overrides": {path: secret}}):
        assert refused(post(bob, "/experiments", requested), path)
        assert refused(post(bob, "/experiments/check", requested), path)
        assert refused(bob.post(reverse("launch"), {**requested, "overrides": ""}), path)
    assert refused(post(bob, f"/runs/{source.pk}/clone", {}), path)
    assert refused(post(bob, f"/runs/{source.pk}/fork", {"step": 20, "overrides": {}}), path)
    assert set(Run.objects.all()) == present
    if path != "agents.0.model":  # without the paths the same settings are accepted
        harmless = {path: "generated" if path == "problems.dataset" else None}
        made = post(bob, "/experiments", {**from_it, "overrides": harmless})
        assert made.status_code == 201, made.content


@pytest.mark.parametrize("path", ["agents.0.chat_template", "compute.ray_address", "judge.model"])
def test_stored_settings_that_name_it_are_refused_to_a_worker(cast, secret, path):
    """Such runs may exist in a database from before these settings were refused."""
    config = load_recipe("demo", {path: secret}).model_dump(mode="json")
    with pytest.raises(ConfigError, match=path.replace(".", r"\.")):
        refuse_foreign(config)
    refuse_foreign(load_recipe("demo").model_dump(mode="json"))


@pytest.mark.parametrize("path", ["agents.0.chat_template", "compute.ray_address"])
def test_our_own_runs_of_before_give_it_to_no_clone(bob, cast, secret, var_directory, path):
    config = load_recipe("demo", {path: secret}).model_dump(mode="json")
    source = a_source(cast, var_directory, config=config)
    assert refused(post(bob, f"/runs/{source.pk}/clone", {}), path)
    assert refused(post(bob, f"/runs/{source.pk}/fork", {"step": 20, "overrides": {}}), path)
    assert Run.objects.count() == 1


def test_a_value_of_one_kind_is_not_accepted_as_another(
    bob, cast, tmp_path, settings, var_directory
):
    """The directory of a run's model is not accepted as a chat template of its clone."""
    settings.MODELS_DIRS = [tmp_path / "models"]
    (tmp_path / "models").mkdir()
    named = tmp_path / "models" / "big"
    named.mkdir()
    config = load_recipe("demo", {"agents.0.model": str(named)}).model_dump(mode="json")
    source = a_source(cast, var_directory, config=config)
    requested = {"project": cast.project.pk, "source": str(source.pk),
             "overrides": {"agents.0.chat_template": str(named)}}  # fmt: skip
    assert refused(post(bob, "/experiments", requested), "agents.0.chat_template")


def test_a_chat_template_is_one_that_the_operator_has_listed(cast, tmp_path, settings):
    settings.MODELS_DIRS = [tmp_path / "models"]
    (tmp_path / "models" / "big").mkdir(parents=True)
    (tmp_path / "models" / "short.jinja").write_text("{{ messages }}")
    (tmp_path / "models" / "notes.txt").write_text("private")
    path = "agents.first.chat_template"
    for name in ("big", "notes.txt", "../models/short.jinja", "none.jinja", ""):
        with pytest.raises(ConfigError, match=r"local:NAME\.jinja.*\(local:short\.jinja\)"):
            create_experiment_with_run(cast.project, cast.bob, "mars2", {path: f"local:{name}"}, "")
    run = create_experiment_with_run(
        cast.project, cast.bob, "mars2", {path: "local:short.jinja"}, ""
    )
    listed = str((tmp_path / "models" / "short.jinja").resolve())
    assert run.config["agents"][0]["chat_template"] == listed
    refuse_foreign(run.config)


def test_each_kind_but_a_cluster_has_a_rule():
    assert set(Kind) - set(RULES) == {Kind.CLUSTER, Kind.ENDPOINT}
    assert {one.kind for one in locations(RunConfig, load_recipe("demo"))} <= set(RULES)


def test_no_setting_of_the_sandbox_is_above_what_the_operator_allows(bob, cast, settings):
    settings.SANDBOX_CAPS = SandboxCaps(seconds=3, memory_mb=96, output_mb=1)
    wide = {"sandbox.cpu_seconds": 3.5, "sandbox.wall_seconds": 7, "sandbox.memory_mb": 97,
            "sandbox.output_bytes": 2 << 20}  # fmt: skip
    new = {"project": cast.project.pk, "recipe": "demo"}
    search = {"team": ["starter:oak"], "problem": record(A_PROBLEM)}
    for path, value in wide.items():
        requested = {"overrides": {path: value}}
        assert refused(post(bob, "/runs", new | requested), path)
        assert refused(post(bob, f"/projects/{cast.project.pk}/searches", search | requested), path)
    assert not Run.objects.exists()
    allowed = {"sandbox.cpu_seconds": 3, "sandbox.wall_seconds": 6, "sandbox.memory_mb": 96}
    assert post(bob, "/runs", new | {"overrides": allowed}).status_code == 201
    assert post(bob, "/runs", new).status_code == 201  # the engine lowers larger defaults
