"""Tests that a run resumes with its own settings, problems and models, and refuses others."""

import json
import shutil

import pytest

from engine.config.schema import RunConfig, parse_config
from engine.policy.starters import starter_directory
from engine.problems.source import load_problem_set
from engine.training.compatibility import (
    CHANGES_ROUNDING,
    JUDGED_BY_CONTENT,
    MAY_CHANGE,
    ResumeError,
    RunRecord,
    check_compatible,
)
from tests.engine.problems import rows

STARTERS = [{"name": "oak", "model": "starter:oak"}, {"name": "fern", "model": "starter:fern"}]
PROBLEMS = {"seed": 3, "train": 20, "validation": 2, "test": 2}


def settings(**sections) -> RunConfig:
    return parse_config({"agents": STARTERS, "problems": PROBLEMS, **sections})


def record_of(config) -> RunRecord:
    return RunRecord.of(config, load_problem_set(config.problems))


@pytest.fixture(scope="module")
def begun():
    return record_of(settings()).state()


def refusal(saved, config) -> dict[str, tuple]:
    """{path: (value, reason)}."""
    with pytest.raises(ResumeError) as refused:
        check_compatible(saved, record_of(config))
    return {
        problem["path"]: (problem["value"], problem["reason"]) for problem in refused.value.problems
    }


def test_the_same_run_goes_on(begun):
    check_compatible(begun, record_of(settings()))


def test_how_far_and_with_what_means_may_change(begun):
    changed = settings(
        training={"steps": 9, "minutes": 5, "validate_every": 3, "checkpoint_every": 1,
                  "keep_checkpoints": 7, "micro_batch_tokens": 512, "row_layout": "prefix"},
        agents=[STARTERS[0] | {"learner_ranks": 4}, STARTERS[1]],
        sandbox={"workers": 4},
        compute={"threads_per_agent": 2, "lanes": 1, "ray_address": "auto"},
    )  # fmt: skip
    check_compatible(begun, record_of(changed))
    vllm = {"name": "vllm", "cpu_cache_gib": 2.0, "gpu_memory_utilization": 0.3}
    agents = [{**STARTERS[0], "generator": vllm}, STARTERS[1]]
    check_compatible(begun, record_of(settings(agents=agents)))
    shorter = [{**STARTERS[0], "generator": {**vllm, "max_model_len": 64}}, STARTERS[1]]
    assert list(refusal(begun, settings(agents=shorter))) == ["agents.0.generator.max_model_len"]


def test_gauges_may_change_when_a_run_resumes_and_what_evaluates_may_not(begun):
    gauges = {"gauges": ["support", "success"], "support": {"steps": 3}}
    check_compatible(begun, record_of(settings(evaluation=gauges)))
    warmer = settings(evaluation={**gauges, "temperature": 0.5})
    assert list(refusal(begun, warmer)) == ["evaluation.temperature"]


def test_every_difference_is_reported_with_both_values_and_the_remedy(begun):
    agents = [STARTERS[0], {**STARTERS[1], "sampling": {"temperature": 0.5}}]
    problems = refusal(
        begun,
        settings(seed=4, agents=agents, loss={"clip_high": 0.5}, search={"nodes_per_tree": 2}),
    )
    assert set(problems) == {
        "seed", "agents.1.sampling.temperature", "loss.clip_high", "search.nodes_per_tree"
    }  # fmt: skip
    value, reason = problems["seed"]
    assert value == 4
    assert "begun with 0" in reason and "put it back, or start a new run" in reason


def test_an_added_or_removed_agent_is_reported(begun):
    problems = refusal(begun, settings(agents=STARTERS[:1]))
    assert (
        problems["agents.1.name"][0] is None and "begun with fern" in problems["agents.1.name"][1]
    )
    problems = refusal(record_of(settings(agents=STARTERS[:1])).state(), settings())
    assert (
        problems["agents.1.name"][0] == "fern"
        and "begun with nothing" in problems["agents.1.name"][1]
    )


def test_other_weights_at_the_same_path_are_another_model(tmp_path):
    shutil.copytree(starter_directory("oak"), tmp_path / "model")
    agents = [{"name": "oak", "model": str(tmp_path / "model")}]
    config = settings(agents=agents)
    begun = record_of(config).state()
    (tmp_path / "model" / "README.md").write_text("A model.")
    check_compatible(begun, record_of(config))
    shutil.copy(starter_directory("fern") / "model.safetensors", tmp_path / "model")
    assert list(refusal(begun, config)) == ["agents.oak.model"]


def test_a_model_that_moved_is_the_same_model(tmp_path):
    begun = record_of(settings(agents=STARTERS[:1])).state()
    shutil.copytree(starter_directory("oak"), tmp_path / "model")
    moved = settings(agents=[{"name": "oak", "model": str(tmp_path / "model")}])
    check_compatible(begun, record_of(moved))


def test_problems_are_identified_by_their_content(tmp_path):
    def stored(name, *numbers):
        requested = [
            {**rows.ACECODE, "id": f"p{n}", "question": f"Triple it, {n}."} for n in numbers
        ]
        (tmp_path / name).write_text(json.dumps(requested))
        return settings(
            problems={"dataset": str(tmp_path / name), "train": 4, "validation": 1, "test": 1}
        )

    begun = record_of(stored("problems.json", *range(6))).state()
    check_compatible(begun, record_of(stored("moved.json", *reversed(range(6)))))
    problems = refusal(begun, stored("problems.json", 0, 1, 2, 3, 4, 9))
    assert set(problems) <= {"problems.train", "problems.validation", "problems.test"}
    assert all("problems with content" in value for value, _ in problems.values())
    assert refusal(begun, stored("problems.json", *range(5)))


def test_in_deterministic_mode_nothing_may_change_that_rounds():
    fixed = {"compute": {"deterministic": True}}
    begun = record_of(settings(**fixed)).state()
    check_compatible(begun, record_of(settings(training={"steps": 7}, **fixed)))
    lanes = settings(compute={"deterministic": True, "lanes": 1})
    assert list(refusal(begun, lanes)) == ["compute.lanes"]
    assert list(refusal(begun, settings())) == ["compute.deterministic"]


def test_an_unknown_setting_is_reported(begun):
    older = {**begun, "config": {**begun["config"], "temper": 3}}
    assert "unknown setting" in refusal(older, settings())["temper"][1]


def test_a_checkpoint_from_before_a_setting_existed_goes_on(begun):
    config = {k: v for k, v in begun["config"].items() if k != "evaluation"}
    check_compatible({**begun, "config": config}, record_of(settings()))


@pytest.mark.parametrize("path", sorted(MAY_CHANGE | CHANGES_ROUNDING | JUDGED_BY_CONTENT))
def test_each_path_that_may_change_is_a_setting(path):
    here = settings().model_dump()
    for part in path.split("."):
        here = here[0] if part == "*" else here[part]


def test_a_chat_template_may_move_and_may_not_change(tmp_path):
    one, two = tmp_path / "one.jinja", tmp_path / "two.jinja"
    one.write_text("{{ messages[0].content }}")
    two.write_text(one.read_text())

    def with_template(file):
        return settings(agents=[STARTERS[0], {**STARTERS[1], "chat_template": str(file)}])

    saved = record_of(with_template(one)).state()
    check_compatible(saved, record_of(with_template(two)))
    two.write_text("{{ messages[-1].content }}")
    assert set(refusal(saved, with_template(two))) == {"agents.fern.model"}
    assert set(refusal(saved, settings())) == {"agents.fern.model"}


def test_the_base_of_an_adapter_may_not_change(tmp_path):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    shutil.copytree(starter_directory("fern"), base)
    adapter.mkdir()
    named = {"peft_type": "LORA", "base_model_name_or_path": str(base)}
    (adapter / "adapter_config.json").write_text(json.dumps(named))
    config = settings(agents=[STARTERS[0], {**STARTERS[1], "model": str(adapter)}])
    saved = record_of(config).state()
    (base / "model.safetensors").write_bytes(b"other")
    assert set(refusal(saved, config)) == {"agents.fern.model"}
