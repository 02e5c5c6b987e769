"""Tests of runs and evaluations whose models and problems are on a hub, as whole commands."""

import json

import pytest

from engine.config.schema import parse_config
from engine.problems.generator import GeneratedProblems, Split
from engine.problems.jsonl import save_problems
from tests.helpers.hub_server import TOKEN

pytestmark = [pytest.mark.slow, pytest.mark.large]
SAMPLING = {"max_prompt_tokens": 192, "max_new_tokens": 16}


@pytest.fixture
def on_hub(hub, oak, tmp_path):
    """Adds a model and a data set; returns their commits."""
    file = tmp_path / "acorns.jsonl"
    save_problems(file, GeneratedProblems(5).first(Split.TRAIN, 6))
    return (
        hub.add("models/elms/oak", oak).branches["main"],
        hub.add("datasets/elms/acorns", {"acorns.jsonl": file.read_bytes()}).branches["main"],
    )


def test_a_run_trains_on_a_hub_and_resumes_without_it(hub, engine, on_hub, tmp_path):
    model, problems = (f"hf:elms/{n}@{c}" for n, c in zip(("oak", "acorns"), on_hub, strict=True))
    config = parse_config({
        "agents": [{"name": "oak", "model": "hf:elms/oak@main", "sampling": SAMPLING}],
        "problems": {"dataset": "hf:elms/acorns@main", "train": 4, "validation": 0, "test": 0},
        "search": {"nodes_per_tree": 2, "nodes_in_flight": 1},
        "training": {"steps": 1, "trees_per_step": 2, "checkpoint_every": 1},
        "credit": {"dynamic_filter": False},
        "evaluation": {"tree_nodes": 2},
    })  # fmt: skip
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    file = run_dir / "config.json"
    file.write_text(config.model_dump_json())
    ((status, _, err),) = engine.run(["train", str(run_dir)], token=TOKEN)
    assert status == 0, err
    written = [path for path in run_dir.rglob("*") if path.is_file()]
    assert written and not [path for path in written if TOKEN.encode() in path.read_bytes()]
    stored = json.loads(file.read_text())
    assert (stored["agents"][0]["model"], stored["problems"]["dataset"]) == (model, problems)
    for repository in hub.repositories.values():
        repository.commit({"config.json": b"{}", "acorns.jsonl": b"{}"}, "other content")
    stored["training"]["steps"] = 2
    file.write_text(json.dumps(stored))
    hub.requests.clear()
    ((status, _, err),) = engine.run(["train", str(run_dir)], HF_ENDPOINT="http://127.0.0.1:9")
    assert status == 0 and not hub.requests, err
    assert json.loads((run_dir / "checkpoints" / "step-000002" / "state.json").read_text())


def test_an_evaluation_names_the_commits_that_it_measured(engine, on_hub):
    ((status, out, err),) = engine.run(
        ["evaluate", "--agents", "hf:elms/oak@main", "--dataset", "hf:elms/acorns@main",
         "--no-search", "--problems", "1", "--json", "-",
         "--set", "agents.oak.sampling.max_new_tokens=8"],
    )  # fmt: skip
    result = json.loads(out)
    assert status == 0, err
    assert result["agents"] == {"oak": f"hf:elms/oak@{on_hub[0]}"}
    assert result["dataset"]["path"] == f"hf:elms/acorns@{on_hub[1]}"
