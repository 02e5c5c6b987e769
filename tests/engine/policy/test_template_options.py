"""Tests that the options of an agent reach its chat template, and so its prompts."""

import pytest

from engine.config.schema import parse_config
from engine.policy.host import PolicyHost
from engine.policy.models.load import ModelError
from engine.policy.types import AnswerCall, Request
from engine.problems.generator import GeneratedProblems, Split
from tests.helpers.policies import tiny_policy

PROBLEM = GeneratedProblems(3).first(Split.TRAIN, 1)[0]
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}no thoughts{% endif %}"
    "{% if effort is defined %}{{ effort + ' effort' }}{% endif %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    directory = tiny_policy(tmp_path_factory.mktemp("model"))
    (directory / "chat_template.jinja").write_text(TEMPLATE)
    return directory


def host_of(model, *options):
    """The host of agents that share the weights of the first, each with its options."""
    sampling = {"max_prompt_tokens": 400, "max_new_tokens": 2}
    agents = [{"name": "a0", "model": str(model), "sampling": sampling}]
    agents += [{"name": f"a{n}", "shares_weights_with": "a0"} for n in range(1, len(options))]
    for agent, given in zip(agents, options, strict=True):
        agent["template_options"] = given
    config = parse_config({"agents": agents})
    return PolicyHost([config.agents], config, [0])


def test_each_agent_of_a_policy_writes_prompts_with_its_own_options(model):
    host = host_of(model, {"enable_thinking": True}, {"enable_thinking": False}, {"unknown": 3})
    answers = host.answer(AnswerCall({name: [Request(PROBLEM)] for name in ("a0", "a1", "a2")}))
    thinking, silent, inherited = (answers[name][0].prompt for name in ("a0", "a1", "a2"))
    assert silent.endswith("no thoughts") and not thinking.endswith("no thoughts")
    assert silent.removesuffix("no thoughts") == thinking == inherited


def test_an_option_that_the_template_cannot_use_is_refused_before_anything_is_written(model):
    with pytest.raises(ModelError, match=r"agents\.a0\.model: its chat template cannot write"):
        host_of(model, {"effort": 3})
