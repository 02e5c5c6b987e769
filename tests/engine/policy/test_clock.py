"""Tests that a chat template which writes the time writes one time in a whole run."""

import json
from datetime import datetime

import pytest

from engine.inference.reward_model import RewardModel
from engine.policy.host import PolicyHost
from engine.policy.models.load import load_policy
from engine.policy.types import AnswerCall, Request
from engine.problems.generator import GeneratedProblems, Split
from engine.resources.model_files.templates import render
from engine.run.clock import run_clock
from tests.helpers.policies import tiny_config, tiny_policy

PROBLEM = GeneratedProblems(3).first(Split.TRAIN, 1)[0]
TEMPLATE = (
    "{% set now = strftime_now('%H:%M:%S.%f') %}It is {{ now }}. "
    "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    directory = tiny_policy(tmp_path_factory.mktemp("model"))
    (directory / "chat_template.jinja").write_text(TEMPLATE)
    return directory


def test_a_template_writes_the_given_time():
    for now, text in (("2031-02-03T04:05:06.000007", "04:05:06.000007"),
                      ("2031-02-03T04:05:06", "04:05:06.000000")):  # fmt: skip
        assert render(TEMPLATE, [], {}, add_generation_prompt=True, now=now) == f"It is {text}. "
    before = datetime.now()
    written = render(
        "{{ strftime_now('%Y-%m-%dT%H:%M:%S.%f') }}", [], {}, add_generation_prompt=True
    )
    assert before <= datetime.fromisoformat(written) <= datetime.now()


def test_a_run_keeps_its_time_in_its_directory(model, tmp_path):
    agents = tiny_config(model).agents
    first = run_clock(agents, tmp_path)
    assert first and run_clock(agents, tmp_path) == first
    assert json.loads((tmp_path / "clock.json").read_text()) == {"local_time": first}
    (tmp_path / "clock.json").write_text('{"local_time": "2031-02-03T04:05:06"}')
    assert run_clock(agents, tmp_path) == "2031-02-03T04:05:06"
    (tmp_path / "clock.json").write_text('{"local_time": "noon"}')
    with pytest.raises(ValueError, match=r"clock\.json: ValueError: .*noon.*give"):
        run_clock(agents, tmp_path)


def test_a_run_whose_templates_write_no_time_has_none(model, tmp_path):
    (agent,) = tiny_config(model).agents
    own = tmp_path / "plain.jinja"
    own.write_text("{{ messages[0].content }}")
    plain = agent.model_copy(update={"chat_template": str(own)})
    endpoint = agent.model_copy(update={"model": "http://127.0.0.1:9/v1#still"})
    starter = agent.model_copy(update={"model": "starter:oak"})
    assert run_clock([plain, endpoint, starter], tmp_path) is None
    assert not (tmp_path / "clock.json").exists()
    own.write_text(TEMPLATE)
    assert run_clock([plain], tmp_path)


def test_a_reward_model_writes_the_time_of_the_run(model, tmp_path):
    (agent,) = tiny_config(model).agents
    plain = agent.model_copy(update={"model": "starter:oak"})
    assert run_clock([plain], tmp_path, str(tmp_path / "none")) is None
    clock = run_clock([plain], tmp_path, str(model))
    assert clock and run_clock([plain], tmp_path, str(model)) == clock
    policy, pair = load_policy(str(model)), ("Add.", "def f(): pass")
    first, second = (RewardModel.on(policy, now) for now in (clock, "2031-02-03T04:05:06.7"))
    text = policy.tokenizer.decode(second.encode(pair))
    assert "It is 04:05:06.700000." in text and first.encode(pair) != second.encode(pair)
    # Without the time of a run it keeps that of its making.
    own = RewardModel.on(policy)
    assert own.encode(pair) == own.encode(pair)


def test_prompts_of_a_run_hold_its_time(model):
    config = tiny_config(model)
    prompts = []
    for clock in ("2031-02-03T04:05:06", "2031-02-03T04:05:06", "2031-02-03T04:05:07"):
        host = PolicyHost([config.agents], config, [0], clock=clock)
        answers = host.answer(AnswerCall({"agent-0": [Request(PROBLEM), Request(PROBLEM)]}))[
            "agent-0"
        ]
        first, second = (list(one.generation.prompt_ids) for one in answers)
        assert first == second
        prompts.append(first)
    assert prompts[0] == prompts[1] != prompts[2]
