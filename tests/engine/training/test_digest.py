"""Tests of the fold behind `train`'s progress line and its result."""

from engine.events.log import EventLog
from engine.events.vocabulary import (
    CheckpointSaved,
    ErrorRaised,
    EvaluationResult,
    RunPlanned,
    RunResumed,
    RunState,
    RunStateChanged,
    RunWaiting,
    StepEnded,
)
from engine.run.summary import RunDigest


def step(number: int, reward: float) -> StepEnded:
    return StepEnded(number, 1.0, {}, 8, reward, 0.5, {}, {}, 0, 0, 90, 10.0 * number)


def evaluation(number: int) -> EvaluationResult:
    return EvaluationResult(number, "validation", {"oak": 0.1 * number}, {"oak": 0.01}, 10)


def written(tmp_path, *payloads):
    log = EventLog(tmp_path)
    for payload in payloads:
        log.append(payload)
    log.close()
    return RunDigest.of(tmp_path)


def test_the_line_says_what_is_awaited_else_how_far_it_is(tmp_path):
    digest = written(tmp_path, RunStateChanged(RunState.STARTING), RunWaiting("sandbox", 9))
    assert digest.line() == "waiting for sandbox"
    more = (RunWaiting(""), RunStateChanged(RunState.RUNNING), RunPlanned(40, ["oak"]))
    written(tmp_path, *more, step(1, 0.25))
    digest.read()
    assert (
        digest.line()
        == "running · step 1 of 40 · reward 0.250, trees solved 50% · 10 s of training"
    )
    written(tmp_path, RunPlanned(40, ["oak"], 6.0))
    digest.read()
    assert "step 1, 6 minutes planned" in digest.line()


def test_a_resume_voids_steps_and_evaluations_after_its_checkpoint(tmp_path):
    payloads = [step(1, 0.1), evaluation(1), step(2, 0.2), evaluation(2), RunResumed(1)]
    result = written(tmp_path, *payloads).result()
    assert (result["steps"], result["resumed"]) == (1, 1)
    assert [e["step"] for e in result["evaluations"]] == [1]


def test_the_result_names_the_first_cause_and_where_the_models_are(tmp_path):
    failed = written(tmp_path, ErrorRaised("no memory"), RunStateChanged(RunState.FAILED)).result()
    assert (failed["state"], failed["error"]) == ("failed", "no memory")
    saved = CheckpointSaved(3, "models", final=True, models={"oak": "models/oak"})
    done = (RunPlanned(3, ["oak"]), saved, RunStateChanged(RunState.FINISHED))
    result = written(tmp_path, *done).result()
    assert result["models"] == {"oak": str(tmp_path / "models/oak")}
    assert (result["state"], result["error"]) == ("finished", "")
