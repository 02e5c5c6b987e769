"""Tests of the events that survive resumes: one timeline, in which nothing occurs twice."""

import json

from engine.__main__ import main
from engine.cli.compare_runs import first_difference
from engine.events.log import EventLog, read_all
from engine.events.timeline import figures, surviving_events
from engine.events.vocabulary import (
    AgentUpdated,
    EvaluationResult,
    LogLine,
    RunResumed,
    StepEnded,
    StepStarted,
    TreeClosed,
    TreeOpened,
)


def evaluated(log, step, split, score, seconds):
    fields = {"agents": {"oak": score}, "standard_errors": {}, "problems": 4}
    log.append(EvaluationResult(step=step, split=split, seconds=seconds, **fields))


def trained(log, step, seconds, ends=True):
    log.append(StepStarted(step, 1))
    tree = log.seq + 1
    log.append(TreeOpened(step, "p", "Return x."), tree=tree)
    log.append(TreeClosed(4, True, 0.1 + 0.2, False), tree=tree)
    log.append(
        AgentUpdated(
            agent="oak", step=step, version=step, nodes=4, loss=0.0, policy_loss=0.0, kl=0.0,
            clip_fraction=0.0, entropy=0.5, gradient_norm=1.0, learning_rate=1e-6, lag=0.0,
            mismatch=0.0, trees=[tree],
        )
    )  # fmt: skip
    if step == 1:
        evaluated(log, 0, "validation", 0.25, seconds)
    if ends:
        log.append(
            StepEnded(
                step=step, seconds=seconds, phases={"learn": seconds}, nodes=4, reward=0.5,
                solved=1.0, node_share={}, reward_by_agent={}, filtered_trees=0, dropped_nodes=0,
                tokens=9, training_seconds=seconds,
            )
        )  # fmt: skip


def a_log(folder, write):
    folder.mkdir()
    log = EventLog(folder)
    write(log)
    log.close()
    return list(read_all(folder))


def uninterrupted(log):
    for step in (1, 2, 3):
        trained(log, step, 1.0)
    evaluated(log, 3, "test", 0.75, 1.0)


def interrupted(log):
    trained(log, 1, 2.0, ends=False)
    log.append(RunResumed(0))
    log.append(LogLine("info", "agents are ready"))
    for step in (1, 2):
        trained(log, step, 3.0)
    trained(log, 3, 3.0, ends=False)
    log.append(RunResumed(2))
    trained(log, 3, 4.0)
    evaluated(log, 3, "test", 0.75, 5.0)


def test_an_interrupted_run_comes_to_the_same_figures(tmp_path):
    whole = figures(a_log(tmp_path / "whole", uninterrupted))
    assert figures(a_log(tmp_path / "cut", interrupted)) == whole
    assert [tree for kind, tree, *_ in whole if kind == "tree.open"] == [1, 2, 3]
    assert sum(kind == "eval.result" for kind, *_ in whole) == 2
    learned = [payload["trees"] for kind, _, _, payload in whole if kind == "agent.update"]
    assert learned == [[1], [2], [3]]


def test_a_number_that_differs_in_its_last_digit_is_another_figure(tmp_path):
    def otherwise(log):
        interrupted(log)
        evaluated(log, 3, "test", 0.75 + 2**-53, 5.0)

    whole = figures(a_log(tmp_path / "whole", uninterrupted))
    assert figures(a_log(tmp_path / "other", otherwise)) != whole


def test_steps_after_the_checkpoint_do_not_survive(tmp_path):
    def cut_off(log):
        uninterrupted(log)
        log.append(RunResumed(1))

    surviving = surviving_events(a_log(tmp_path / "cut", cut_off))
    assert {e.payload["step"] for e in surviving if "step" in e.payload} == {0, 1}
    assert sum(e.kind == "tree.close" for e in surviving) == 1


def test_the_first_difference_of_two_runs_is_reported(tmp_path, capsys):
    def shorter(log):
        for step in (1, 2, 3):
            trained(log, step, 1.0)

    one, other, third = tmp_path / "one", tmp_path / "other", tmp_path / "third"
    a_log(one, uninterrupted)
    a_log(other, interrupted)
    a_log(third, shorter)
    assert main(["same", str(one), str(other)]) == 0
    assert "bit for bit" in capsys.readouterr().out
    assert main(["same", str(one), str(third), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert not data["same"]
    assert data["difference"].startswith("figure 17: ('eval.result',")
    assert data["difference"].endswith("and nothing more")
    assert main(["same", str(one), str(tmp_path / "nowhere")]) == 2
    assert "holds no events.jsonl" in capsys.readouterr().err


def test_runs_with_other_weights_are_not_the_same(tmp_path):
    for name in ("one", "other"):
        a_log(tmp_path / name, uninterrupted)
        (tmp_path / name / "models" / "oak").mkdir(parents=True)
        (tmp_path / name / "models" / "oak" / "model.safetensors").write_bytes(name.encode())
    result = first_difference(tmp_path / "one", tmp_path / "other")
    assert result.startswith("models/oak/model.safetensors: SHA-256 ")
