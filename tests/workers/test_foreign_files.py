"""Tests that no text of a file closed to a member reaches a prompt of a real engine's run.

The control is a template that the operator has listed: its text is in the prompts, so the search
that does not match the other file would match it.
"""

from __future__ import annotations

import copy
import json
from itertools import islice

import pytest

from engine.events.vocabulary import RunState
from engine.problems.records import record
from tests.helpers.builders import A_PROBLEM
from tests.helpers.policies import tiny_policy
from tests.helpers.waiting import eventually
from tests.workers.test_worker import Worker, state_of
from webapp.experiments.models import Run
from webapp.projects.services import ensure_demo
from webapp.telemetry.models import Event
from workers.runs.engine_process import DEFAULT_COMMAND

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

LISTED, SECRET = "LISTED-BY-THE-OPERATOR", "OF-THE-SERVER-ALONE"
TEMPLATE = "{{% for one in messages %}}{{{{ one.content }}}}{{% endfor %}}{marker}"
CLUSTER = "ray://elsewhere:10001"


@pytest.fixture
def files(var, settings):
    """The operator's folder of models with one template, and a file that is not listed."""
    settings.MODELS_DIRS = [var / "models"]
    tiny_policy(var / "models" / "tiny")
    (var / "models" / "listed.jinja").write_text(TEMPLATE.format(marker=LISTED))
    (var / "models" / "private.txt").write_text(TEMPLATE.format(marker=SECRET))
    secret = var / "secret.jinja"
    secret.write_text(TEMPLATE.format(marker=SECRET))
    return {
        "absolute": str(secret),
        "local": "local:secret.jinja",
        "upwards": "local:../secret.jinja",
        "through a listed folder": f"{var}/models/../secret.jinja",
        "in a listed folder": str(var / "models" / "private.txt"),
        "by a listed name": "local:private.txt",
        "after a listed name": "local:listed.jinja/../../secret.jinja",
        "home": "~/secret.jinja",
        "address": f"file://{secret}",
    }


@pytest.fixture
def member(client):
    user, project = ensure_demo()
    client.force_login(user)
    return client, project


def post(client, where, body, method="post"):
    return getattr(client, method)(f"/api/v1{where}", json.dumps(body), "application/json")


def an_agent(template=None):
    sampling = {"max_prompt_tokens": 400, "max_new_tokens": 4}
    agent = {"name": "oak", "model": "local:tiny", "sampling": sampling}
    return agent if template is None else {**agent, "chat_template": template}


SMALL = {
    "problems.train": 20, "problems.validation": 0, "problems.test": 1,
    "search.nodes_per_tree": 2, "search.nodes_in_flight": 1,
    "training.steps": 1, "training.trees_per_step": 1, "training.checkpoint_every": 1,
    "evaluation.tree_nodes": 2, "training.minutes": None,
}  # fmt: skip


def attempts(project, run, value, path="chat_template"):
    """(address, body, method) of every operation that takes settings, with `value` in each of its
    positions; in an agent, or, if `path` is a table and a field of it, in the run."""
    table, _, field = path.rpartition(".")
    if table:
        ways = [{path: value}, {table: {field: value}}]
        many = [{path: [value, f"{value}x"]}, {table: [{field: value}]}]
    else:
        agents = [an_agent(value), {**an_agent(), "name": "elm"}]
        ways = [{f"agents.{key}.{path}": value} for key in ("0", "oak")]
        ways += [{"agents": agents}, {"agents.0": an_agent(value)}]
        ways += [{"agents.elm.name": "elm", "agents.elm.model": "local:tiny",
                  f"agents.elm.{path}": value}]  # fmt: skip
        many = [{way: [one, None]} for every in ways[:4] for way, one in every.items()]
    project_id, run_id = project.pk, str(run.pk)
    bases = [{"recipe": "demo"}, {"source": run_id}, {"source": run_id, "step": 1}]
    for requested in [{"overrides": one} for one in ways] + [{"sweep": one} for one in many]:
        for base in bases:
            for where in ("/experiments", "/experiments/check"):
                yield where, {"project": project_id, **base, **requested}, "post"
    for one in ways:
        yield "/runs", {"project": project_id, "recipe": "demo", "overrides": one}, "post"
        yield f"/runs/{run_id}/fork", {"step": 1, "overrides": one}, "post"
        search = {"team": ["local:tiny"], "problem": record(A_PROBLEM), "overrides": one}
        yield f"/projects/{project_id}/searches", search, "post"
    for body in ({"config": {"agents": [an_agent(value)]}}, {"overrides": ways[0]}):
        yield f"/runs/{run_id}", body, "patch"


def forms(project, run, value):
    """The same for the browser's two forms: (address, data)."""
    lines = (
        f'agents.oak.chat_template = "{value}"',
        f"agents.0.chat_template = {value}",
        f'[[agents]]\nname = "oak"\nmodel = "local:tiny"\nchat_template = "{value}"',
        f'agents = [{{name = "oak", model = "local:tiny", chat_template = "{value}"}}]',
    )
    bodies = [{"overrides": line} for line in lines]
    bodies += [{"overrides": "", "set:agents.oak.chat_template": value}]
    bodies += [{"overrides": "", "sweep": f"agents.oak.chat_template = {value}, unset"}]
    form = {"project": project.pk, "name": "Try"}
    for one in bodies:
        for base in ({"recipe": "demo"}, {"source": run.pk}, {"source": run.pk, "step": 1}):
            yield "/runs/new/", {**form, **base, **one}
        problem = {"source": "paste", "statement": "Double x.", "entry_point": "solve",
                   "public_tests": "assert solve(1) == 2"}  # fmt: skip
        yield "/searches/new/", {**form, "team": ["local:tiny"], **problem, **one}


def stored_anywhere(var, marker):
    """(kinds of events that hold the text, files of runs that hold it)."""
    result = Event.objects.extra(where=["payload::text LIKE %s"], params=[f"%{marker}%"])
    written = (file for file in (var / "runs").rglob("*") if file.is_file())
    files = [file.name for file in written if marker.encode() in file.read_bytes()]
    return list(result.values_list("kind", flat=True)), files


@pytest.mark.large
def test_a_file_of_the_server_never_reaches_a_prompt_by_any_way(member, var, files):
    client, project = member
    given = {**SMALL, "agents": [an_agent("local:listed.jinja")]}
    made = post(client, "/runs", {"project": project.pk, "recipe": "demo", "overrides": given})
    assert made.status_code == 201, made.json()
    run = Run.objects.get(pk=made.json()["id"])
    with Worker(var, command=DEFAULT_COMMAND):
        ends = (RunState.FINISHED, RunState.FAILED)
        eventually(lambda: state_of(run) in ends, "the run to end", 300)
        assert run.run_state is RunState.FINISHED, run.error
        assert "node.text" in stored_anywhere(var, LISTED)[0], "the control"
        for what, value in files.items():
            few = None if what == "absolute" else 4  # every way once, each spelling by some
            for where, body, method in islice(attempts(project, run, value), few):
                result = post(client, where, body, method)
                assert result.status_code in (409, 422), (what, where, body, result.content[:300])
            for where, body in islice(forms(project, run, value), few):
                result = client.post(where, body)
                assert result.status_code in (409, 422), (what, where, body)
        assert list(Run.objects.all()) == [run]
        # As an earlier release could have stored it, or as an edit after queueing.
        stored = copy.deepcopy(run.config)
        stored["agents"][0]["chat_template"] = files["absolute"]
        last = Run.objects.create(
            experiment=run.experiment, number=2, config=stored, seed=0, created_by=run.created_by
        )
        eventually(lambda: state_of(last) is RunState.FAILED, "the last run to fail")
    assert "chat_template" in last.error
    assert stored_anywhere(var, SECRET) == ([], [])


def test_no_way_takes_the_address_of_a_cluster(member, var, files):
    client, project = member
    agents = {"agents": [an_agent()]}
    new = {"project": project.pk, "recipe": "demo", "overrides": {**SMALL, **agents}}
    run = Run.objects.get(pk=post(client, "/runs", new).json()["id"])
    Run.objects.filter(pk=run.pk).update(state=RunState.FINISHED.value)
    step = var / "runs" / str(run.pk) / "checkpoints" / "step-000001"
    step.mkdir(parents=True)
    (step / "manifest.json").write_text("{}")
    for value in (CLUSTER, "auto", "local", "127.0.0.1:6379", " ", "", [CLUSTER], {"a": CLUSTER}):
        few = None if value == CLUSTER else 4
        ways = attempts(project, run, value, "compute.ray_address")
        for where, body, method in islice(ways, few):
            result = post(client, where, body, method)
            assert result.status_code in (409, 422), (where, body, result.content[:300])
    assert list(Run.objects.all()) == [run]
    result = post(client, f"/runs/{run.pk}/clone", {"overrides": {"compute.ray_address": CLUSTER}})
    cloned = Run.objects.get(pk=result.json()["id"])
    assert cloned.config == Run.objects.get(pk=run.pk).config, "a clone takes no settings"
