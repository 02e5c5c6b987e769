"""The real engine as a process: Ray, two policies, the sandbox; killed, stopped and resumed."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from engine.config import RunConfig
from engine.events import read_all
from engine.policy.load import load_policy
from tests.policies import tiny_config, tiny_policy
from tests.problems import rows
from tests.waiting import eventually

pytestmark = pytest.mark.slow
DEADLINE = 400


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [tiny_policy(folder / "a", 1), tiny_policy(folder / "b", 2, vocabulary=500)]


def start(run_dir, address=""):
    """The engine as a process; without an address it starts a Ray of its own."""
    with (run_dir / "engine.log").open("ab") as log:
        command = [sys.executable, "-m", "engine", "train", str(run_dir), "--json"]
        environment = os.environ | {"RAY_ADDRESS": address}
        return subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment
        )


def prepare(run_dir, config: RunConfig):
    run_dir.mkdir()
    (run_dir / "config.json").write_text(config.model_dump_json())
    return run_dir


def events(run_dir, kind=None):
    return [e for e in read_all(run_dir) if kind in (None, e.kind)]


def finished_steps(run_dir):
    """Steps as a reader of the log counts them: a resume voids what came after its checkpoint."""
    steps = []
    for event in read_all(run_dir):
        if event.kind == "run.resumed":
            steps = [s for s in steps if s <= event.payload["step"]]
        elif event.kind == "step.end":
            steps.append(event.payload["step"])
    return steps


def test_a_run_trains_both_agents_and_ends_with_their_weights(models, ray_address, tmp_path):
    run_dir = prepare(tmp_path / "run", tiny_config(*models))
    process = start(run_dir, ray_address)
    assert process.wait(DEADLINE) == 0, (run_dir / "engine.log").read_text()[-3000:]
    log = events(run_dir)
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert all(e.typed() for e in log)
    assert finished_steps(run_dir) == [1, 2, 3]
    assert not events(run_dir, "run.resumed")
    states = [e.payload["state"] for e in events(run_dir, "run.state")]
    assert states == ["starting", "running", "finished"]

    counts = Counter(e.kind for e in log)
    assert counts["tree.open"] == counts["tree.close"] == 12
    assert counts["node.open"] == counts["node.close"] == counts["node.credit"] == 48
    updates = events(run_dir, "agent.update")
    assert {u.payload["agent"] for u in updates} == {"agent-0", "agent-1"}
    assert all(u.payload["mismatch"] < 1e-4 for u in updates)
    opened = {e.tree: e.payload["step"] for e in log if e.kind == "tree.open"}
    for update in updates:
        assert {opened[tree] for tree in update.payload["trees"]} == {update.payload["step"]}
    closes = {(e.tree, e.node): e.payload for e in log if e.kind == "node.close"}
    texts = {(e.tree, e.node): e.payload for e in log if e.kind == "node.text"}
    assert texts.keys() == closes.keys()
    for place, text in texts.items():
        assert len(text["tokens"]) == len(text["logprobs"]) == closes[place]["tokens"]
        mean = sum(text["logprobs"]) / len(text["logprobs"])
        assert mean == pytest.approx(closes[place]["mean_logprob"], abs=1e-3)
        assert "Write solve(x)" in text["prompt"]
    check_learned_tokens(log, closes)

    tests = [e.payload for e in events(run_dir, "eval.result") if e.payload["split"] == "test"]
    assert [t["step"] for t in tests] == [0, 3]
    told = json.loads((run_dir / "engine.log").read_text().splitlines()[-1])
    assert (told["state"], told["steps"], told["error"]) == ("finished", 3, "")
    assert [e["pass1"] for e in told["evaluations"] if e["split"] == "test"] == [
        t["agents"] for t in tests
    ]
    assert all(t["problems"] == 6 and t["tree"] is not None for t in tests)
    (final,) = [e.payload for e in events(run_dir, "checkpoint.saved") if e.payload["final"]]
    for name, model in final["models"].items():
        assert load_policy(str(run_dir / model)), name


def check_learned_tokens(log, closes):
    """Every node that was learned from is told token by token, and the tokens mean the update's."""
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
        # Nothing was learned between writing and learning: the ratios are 1.
        assert all(abs(value - 1) < 2e-3 for _, one in nodes for value in one["ratio"])


def test_a_killed_and_a_stopped_run_go_on_from_their_last_step(models, ray_address, tmp_path):
    training = {"steps": 6, "trees_per_step": 4, "validate_every": 9, "checkpoint_every": 2}
    problems = {"seed": 3, "train": 100, "validation": 0, "test": 0}
    config = tiny_config(models[0], training=training, problems=problems)
    run_dir = prepare(tmp_path / "run", config)

    killed = start(run_dir)
    eventually(lambda: 3 in finished_steps(run_dir), "step 3 to end", DEADLINE)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(10)

    stopped = start(run_dir, ray_address)
    eventually(lambda: events(run_dir, "run.resumed"), "the resume", DEADLINE)
    eventually(lambda: max(finished_steps(run_dir)) >= 3, "step 3 again", DEADLINE)
    stopped.terminate()
    assert stopped.wait(DEADLINE) in (0, 3)

    last = start(run_dir, ray_address)
    assert last.wait(DEADLINE) == 0, (run_dir / "engine.log").read_text()[-3000:]
    log = events(run_dir)
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert finished_steps(run_dir) == [1, 2, 3, 4, 5, 6]
    assert events(run_dir, "run.resumed")[0].payload["step"] == 2


def test_a_run_on_a_published_file_says_what_it_left_out(models, tmp_path, ray_address):
    file = tmp_path / "acecode.json"
    without_tests = {**rows.ACECODE, "test_cases": []}
    good = [{**rows.ACECODE, "id": f"oss_{n}", "question": f"{n}: triple it."} for n in range(3)]
    wrong = {**rows.ACECODE, "id": "wrong", "question": "Triple a number."}
    wrong["inferences"] = [{"completion": "def triple(x): return x", "pass_rate": 1.0}]
    file.write_text(json.dumps([*good, without_tests, wrong]))
    training = {"steps": 1, "trees_per_step": 2, "validate_every": 9, "checkpoint_every": 2}
    problems = {"dataset": str(file), "train": 2, "validation": 0, "test": 2}
    config = tiny_config(models[0], training=training, problems=problems)
    run_dir = prepare(tmp_path / "run", config)
    process = start(run_dir, ray_address)
    assert process.wait(DEADLINE) == 0, (run_dir / "engine.log").read_text()[-3000:]
    lines = [event.payload["message"] for event in events(run_dir, "log.line")]
    unread, failing = [line for line in lines if "left out" in line]
    assert f"{file}:4: test_cases" in unread
    assert f"{file}:5: reference = 'wrong': its own reference ends as wrong_answer" in failing
    named = {event.payload["problem"] for event in events(run_dir, "tree.open")}
    assert named <= {"oss_0", "oss_1", "oss_2"}


def test_what_cannot_run_is_refused_before_anything_starts(models, tmp_path):
    config = tiny_config(models[0], tmp_path / "nowhere")
    run_dir = prepare(tmp_path / "run", config)
    process = start(run_dir)
    assert process.wait(DEADLINE) == 2
    assert "nowhere is not a directory" in (run_dir / "engine.log").read_text()
    assert not (run_dir / "events.jsonl").exists()
