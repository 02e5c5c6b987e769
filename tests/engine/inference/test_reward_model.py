"""Tests of the reward model: its training data, learning, decisions and refusals."""

import json
import math

import pytest
from safetensors.numpy import load_file

from engine.__main__ import main
from engine.evaluation.measurement import measure
from engine.events.log import EventLog
from engine.events.vocabulary import (
    NodeClosed,
    NodeOpened,
    RunResumed,
    StopReason,
    TreeOpened,
    Verdict,
)
from engine.inference.classification import area_under_roc, binary_cross_entropy
from engine.inference.local_team import LocalTeam
from engine.inference.reward_data import Example, examples_of_run, split_by_problem
from engine.inference.reward_model import RewardModel
from engine.policy.models.load import load_policy
from engine.problems.generator import make_problem
from tests.engine.inference.server import MODEL, endpoints
from tests.helpers.policies import tiny_config, tiny_policy

WRONG = ("def solve(x):\n    return x\n", "def solve(x):\n    y = x\n    return y\n")


def log_tree(log, step, problem, programs):
    """One tree whose nodes hold these (program, verdict) pairs."""
    tree = log.seq + 1
    log.append(TreeOpened(step, problem.id, problem.statement), tree=tree)
    for node, (program, verdict) in enumerate(programs, start=1):
        log.append(NodeOpened("agent-0", 0, 1, {}), tree=tree, node=node)
        score = None if verdict is Verdict.SANDBOX_FAILURE else float(verdict is Verdict.PASSED)
        closed = NodeClosed(
            program, verdict, score, score or 0.0, [], 5, StopReason.END_OF_TEXT, -1.0, 0, 0.1
        )
        log.append(closed, tree=tree, node=node)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run directory: log, record and final model; references are right, identities wrong."""
    run = tmp_path_factory.mktemp("runs") / "run"
    run.mkdir()
    config = tiny_config(tiny_policy(run / "models" / "agent-0", 1))
    (run / "config.json").write_text(config.model_dump_json())
    log = EventLog(run)
    different = {p.statement: p for p in (make_problem(4, index)[0] for index in range(80))}
    for problem in list(different.values())[:60]:
        wrong = [(program, Verdict.WRONG_ANSWER) for program in WRONG]
        log_tree(log, 1, problem, [(problem.reference, Verdict.PASSED), *wrong])
    problem, _ = make_problem(4, 0)
    for step, verdict in ((2, Verdict.PASSED), (1, Verdict.SANDBOX_FAILURE), (1, Verdict.PASSED)):
        program = "" if (step, verdict) == (1, Verdict.PASSED) else f"step = {step}"
        log_tree(log, step, problem, [(program, verdict)])
    log.append(RunResumed(1))
    log.close()
    return run


@pytest.fixture(scope="module")
def trained(run_dir, tmp_path_factory):
    """(directory, what the command printed, exit code)"""
    out = tmp_path_factory.mktemp("reward") / "model"
    options = ["--epochs", "4", "--learning-rate", "0.003", "--batch", "16"]
    code = main(["reward-model", str(run_dir), "--out", str(out), *options])
    return out, code


def test_the_reward_model_trains_on_every_surviving_verdict(run_dir):
    examples = examples_of_run(run_dir)
    assert len(examples) == 180 and sum(example.right for example in examples) == 60
    assert not any("step =" in example.program for example in examples)
    assert {e.program for e in examples if not e.right} == set(WRONG)


def test_the_split_is_by_problem_and_has_both_kinds(run_dir):
    parts = split_by_problem(examples_of_run(run_dir), 0.2, seed=0)
    every = [parts.training, parts.stopping, parts.held_out]
    training, stopping, held_out = ({e.statement for e in part} for part in every)
    assert len(training | stopping | held_out) == 60 and sum(map(len, every)) == 180
    assert not training & held_out and not stopping & (training | held_out)
    assert 0 < len(stopping) < len(held_out) < 30
    assert split_by_problem(examples_of_run(run_dir), 0.2, seed=0) == parts
    with pytest.raises(ValueError, match="held out 0 are right"):
        split_by_problem([Example(f"s{i}", "p", i == 2) for i in range(3)], 1e-9, seed=0)


def test_it_beats_the_constant_on_problems_that_it_never_saw(trained, run_dir):
    out, code = trained
    about = json.loads((out / "reward_model.json").read_text())
    result = about["held_out"]
    assert code == 0 and result["auc"] > 0.9 and result["bce"] < 0.8 * result["constant_bce"]
    assert result["right"] * 3 == result["programs"]
    parts = split_by_problem(examples_of_run(run_dir), 0.2, seed=0)
    loaded = RewardModel.load(out)
    scores = loaded.score([(e.statement, e.program) for e in parts.held_out])
    labels = [e.right for e in parts.held_out]
    assert all(0 <= score <= 1 for score in scores)
    assert area_under_roc(labels, scores) == pytest.approx(result["auc"], abs=1e-3)
    assert binary_cross_entropy(labels, scores) == pytest.approx(result["bce"], abs=1e-3)
    assert load_policy(str(out)) and load_file(out / "value_head.safetensors")
    assert not [file for file in out.iterdir() if file.suffix in (".pt", ".bin", ".pkl")]


def test_a_score_depends_on_its_own_program_only(trained):
    model = RewardModel.load(trained[0])
    pairs = [(make_problem(9, i)[0].statement, WRONG[i % 2] * (1 + i % 3)) for i in range(5)]
    alone = [model.score([pair])[0] for pair in pairs]
    assert model.score(pairs) == pytest.approx(alone, abs=1e-5)
    assert model.score([]) == []


@pytest.mark.large
@pytest.mark.slow
def test_a_search_takes_its_answer_by_the_reward_model(trained, server, files, tmp_path, capsys):
    out = tmp_path / "tree.json"
    command = ["search", "--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    command += ["--nodes", "10", "--no-early-stop", "--reward-model", str(trained[0]), "--json"]
    assert main([*command, "--out", str(out)]) in (0, 1)
    answer = json.loads(capsys.readouterr().out)["answer"]
    nodes = json.loads(out.read_text())["nodes"]
    best = max(nodes, key=lambda node: (node["public"], node["reward"], node["node"]))
    assert answer["node"] == best["node"]
    model = RewardModel.load(trained[0])
    statement = json.loads(out.read_text())["problem"]["statement"]
    scores = model.score([(statement, node["program"]) for node in nodes])
    assert [node["reward"] for node in nodes] == pytest.approx(scores, abs=1e-5)


def test_an_evaluation_takes_its_answers_by_the_reward_model(trained, server, problems):
    model, config = RewardModel.load(trained[0]), endpoints(server, "oak")

    def scorer(programs):
        return model.score([(problem.statement, program) for problem, program in programs])

    with LocalTeam(config) as team:
        team.ready()
        result = measure(team, config, problems[:2], [0], search=True, scorer=scorer)
    for tree, rewards, solved in zip(
        result.trees, result.rewards, result.solved_by_tree(), strict=True
    ):
        nodes = tree.verified()
        assert list(rewards) == [node.node for node in nodes]
        best = max(nodes, key=lambda node: (node.score, rewards[node.node], node.node))
        assert solved == best.verification.passed


def test_a_model_that_is_no_reward_model_is_refused(trained, server, files, tmp_path, capsys):
    command = ["search", "--problem", str(files[0]), "--agents", f"oak={server.url}#{MODEL}"]
    assert main([*command, "--reward-model", "/nowhere"]) == 2
    assert "make a reward model with" in capsys.readouterr().err
    newer = tmp_path / "newer"
    newer.mkdir()
    for name, text in [("value_head.safetensors", "x"), ("reward_model.json", '{"version": 9}')]:
        (newer / name).write_text(text)
    assert main([*command, "--reward-model", str(newer)]) == 2
    assert "version 9" in capsys.readouterr().err


def test_a_run_without_nodes_or_an_output_that_exists_is_refused(run_dir, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["reward-model", str(tmp_path / "empty"), "--out", str(tmp_path / "x")]) == 2
    assert "events.jsonl is missing" in capsys.readouterr().err
    assert main(["reward-model", str(run_dir), "--out", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err


def test_area_and_cross_entropy_are_those_of_their_definitions():
    labels, scores = [True, False, True, False], [0.9, 0.9, 0.8, 0.1]
    wins = [(p > q) + 0.5 * (p == q) for p in (0.9, 0.8) for q in (0.9, 0.1)]
    assert area_under_roc(labels, scores) == pytest.approx(sum(wins) / 4)
    terms = [math.log(0.9), math.log(1 - 0.9), math.log(0.8), math.log(1 - 0.1)]
    assert binary_cross_entropy(labels, scores) == pytest.approx(-sum(terms) / 4)
    with pytest.raises(ValueError, match="needs both"):
        area_under_roc([True], [0.5])
