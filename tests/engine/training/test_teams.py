"""Tests of the real engine with each kind of team: roles, adapters on a base, frozen partner."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from engine.events.log import read_all
from engine.inference.agents import inference_config
from engine.policy.models.adapters import MERGED_FROM
from engine.policy.models.load import ADAPTER_WEIGHTS, load_policy
from engine.policy.policy import STATE_FILE
from tests.helpers.policies import tiny_config
from tests.helpers.waiting import patience

pytestmark = pytest.mark.slow
DEADLINE = 400
TEAM = ["solver", "critic", "partner", "thin", "slim"]


def team():
    own = {
        "sampling": {"max_prompt_tokens": 300, "max_new_tokens": 24},
        "optimizer": {"learning_rate": 1e-3, "schedule": "linear", "warmup_fraction": 0.0},
    }
    return [
        {"name": "solver", "model": "starter:oak", "role": "Solve it.", **own},
        {
            "name": "critic",
            "shares_weights_with": "solver",
            "role": "Improve it.",
            "sampling": {"temperature": 1.3},
        },
        {"name": "partner", "model": "starter:fern", "trainable": False, **own},
        {"name": "thin", "model": "starter:fern", "lora": {"rank": 4}, **own},
        {
            "name": "slim",
            "model": "starter:fern",
            "lora": {"rank": 2, "target_modules": ["q_proj", "v_proj"]},
            **own,
        },
    ]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory, ray_address):
    folder = tmp_path_factory.mktemp("runs") / "team"
    folder.mkdir()
    config = tiny_config(
        agents=team(),
        problems={"seed": 3, "train": 50, "validation": 2, "test": 4},
        search={"nodes_per_tree": 6, "nodes_in_flight": 3},
        training={"steps": 3, "trees_per_step": 5, "validate_every": 9, "checkpoint_every": 3},
        loss={"clip_low": 0.2, "clip_high": 0.2},
    )
    (folder / "config.json").write_text(config.model_dump_json())
    with (folder / "engine.log").open("wb") as log:
        command = [sys.executable, "-m", "engine", "train", str(folder), "--json"]
        code = subprocess.run(
            command,
            stdout=log,
            stderr=log,
            timeout=DEADLINE * patience(),
            env=os.environ | {"RAY_ADDRESS": ray_address},
        ).returncode
    assert code == 0, (folder / "engine.log").read_text()[-3000:]
    return folder


def payloads(run_dir, kind):
    return [event.payload for event in read_all(run_dir) if event.kind == kind]


def test_the_log_records_every_node_token_and_the_outcome(run_dir):
    log = list(read_all(run_dir))
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert all(e.typed() for e in log)
    assert [end["step"] for end in payloads(run_dir, "step.end")] == [1, 2, 3]
    states = [state["state"] for state in payloads(run_dir, "run.state")]
    assert states == ["starting", "running", "finished"]

    counts = Counter(e.kind for e in log)
    assert not counts["run.resumed"]
    assert counts["tree.open"] == counts["tree.close"] == 3 * 5
    assert counts["node.open"] == counts["node.close"] == counts["node.credit"] == 3 * 5 * 6
    opened = {e.tree: e.payload["step"] for e in log if e.kind == "tree.open"}
    for update in payloads(run_dir, "agent.update"):
        assert {opened[tree] for tree in update["trees"]} == {update["step"]}
    closes = {(e.tree, e.node): e.payload for e in log if e.kind == "node.close"}
    texts = {(e.tree, e.node): e.payload for e in log if e.kind == "node.text"}
    assert texts.keys() == closes.keys()
    for place, text in texts.items():
        assert len(text["tokens"]) == len(text["logprobs"]) == closes[place]["tokens"]
        mean = sum(text["logprobs"]) / len(text["logprobs"])
        assert mean == pytest.approx(closes[place]["mean_logprob"], abs=1e-3)
        assert "Write solve(x)" in text["prompt"]
    check_token_stats(log, closes)

    tests = [e for e in payloads(run_dir, "eval.result") if e["split"] == "test"]
    assert [t["step"] for t in tests] == [0, 3]
    data = json.loads((run_dir / "engine.log").read_text().splitlines()[-1])
    assert (data["state"], data["steps"], data["error"]) == ("finished", 3, "")
    assert [e["pass1"] for e in data["evaluations"] if e["split"] == "test"] == [
        t["agents"] for t in tests
    ]
    assert all(t["problems"] == 4 and t["tree"] is not None for t in tests)


def check_token_stats(log, closes):
    """Every node that was learned from has token data, whose means are those of the update."""
    learned = [e for e in log if e.kind == "tree.learned"]
    for update in (e.payload for e in log if e.kind == "agent.update"):
        mine = [e for e in learned if e.payload["version"] == update["version"]]
        mine = [e for e in mine if e.payload["agent"] == update["agent"]]
        assert {e.tree for e in mine} == set(update["trees"])
        nodes = [(e.tree, one) for e in mine for one in e.payload["nodes"]]
        assert len(nodes) == update["nodes"]
        for tree, one in nodes:
            tokens = closes[tree, one["node"]]["tokens"]
            assert len(one["entropy"]) == len(one["ratio"]) == tokens
        entropies = [value for _, one in nodes for value in one["entropy"]]
        assert sum(entropies) / len(entropies) == pytest.approx(update["entropy"], abs=2e-3)
        # Nothing was learned between generating and learning: the ratios are 1.
        assert all(abs(value - 1) < 2e-3 for _, one in nodes for value in one["ratio"])


def test_everyone_writes_and_is_measured_and_only_policies_learn(run_dir):
    assert {node["agent"] for node in payloads(run_dir, "node.open")} == set(TEAM)
    (validation,) = [e for e in payloads(run_dir, "eval.result") if e["split"] == "validation"]
    assert list(validation["agents"]) == TEAM
    (ready,) = [
        line["message"] for line in payloads(run_dir, "log.line") if "are ready" in line["message"]
    ]
    assert "partner" in ready and "(frozen)" in ready and " learn)" in ready

    updates = payloads(run_dir, "agent.update")
    assert {update["agent"] for update in updates} == {"solver", "thin", "slim"}
    shared = {update["agent"]: update["shared_with"] for update in updates}
    assert shared == {"solver": ["critic"], "thin": [], "slim": []}
    assert all(update["mismatch"] < 1e-4 for update in updates)
    last = {update["agent"]: update for update in updates}
    assert all(update["version"] > 1 and update["kl"] > 0 for update in last.values())
    written = [node["agent"] for node in payloads(run_dir, "node.open")]
    by_solver = sum(update["nodes"] for update in updates if update["agent"] == "solver")
    assert by_solver == written.count("solver") + written.count("critic")


def test_a_checkpoint_holds_each_set_of_weights_once_and_none_of_the_frozen(run_dir):
    folder = run_dir / "checkpoints" / "step-000003"
    held = {path.name for path in folder.iterdir() if path.is_dir()}
    assert held == {"solver", "partner", "thin", "slim"}
    assert [path.name for path in (folder / "partner").iterdir()] == [STATE_FILE]
    assert (folder / "solver" / "model.safetensors").is_file()
    for name in ("thin", "slim"):
        assert (folder / name / ADAPTER_WEIGHTS).is_file()
        assert not (folder / name / "model.safetensors").exists()


def test_the_final_models_are_whole_and_trained_differently(run_dir):
    (final,) = [saved for saved in payloads(run_dir, "checkpoint.saved") if saved["final"]]
    assert set(final["models"]) == {"solver", "thin", "slim"}
    start = {name: load_policy(f"starter:{name}").model.state_dict() for name in ("oak", "fern")}
    for name, base in (("solver", "oak"), ("thin", "fern"), ("slim", "fern")):
        directory = run_dir / final["models"][name]
        weights = load_policy(str(directory)).model.state_dict()
        changed = {key for key, value in weights.items() if not value.equal(start[base][key])}
        assert weights.keys() == start[base].keys() and changed
        if name == "slim":
            assert {key.split(".")[-2] for key in changed} == {"q_proj", "v_proj"}
        assert (directory / MERGED_FROM).is_dir() == (name != "solver")


@pytest.mark.parametrize("place", ["", "checkpoints/step-000003"])
def test_the_whole_team_can_be_searched_with(run_dir, place):
    result = inference_config([str(run_dir / place)], {}).agents
    assert [agent.name for agent in result] == TEAM
    folder = run_dir / (place or "models")
    behind = {agent.name: agent.model for agent in result}
    assert behind["critic"] == behind["solver"] == str(folder / "solver")
    assert behind["partner"] == "starter:fern"
    assert behind["thin"] == str(folder / "thin")
    assert [agent.role for agent in result[:2]] == ["Solve it.", "Improve it."]
    assert load_policy(behind["thin"]).model.num_parameters() == (
        load_policy("starter:fern").model.num_parameters()
    )
