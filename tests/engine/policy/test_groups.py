"""Tests of the agents of one process: shared weights, frozen partners, own chat templates."""

import pytest
import torch

from engine.environments.programs.prompts import Feedback
from engine.events.vocabulary import TestReport as Report
from engine.events.vocabulary import Verdict
from engine.policy.host import PolicyHost
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.load import ModelError, check_agent, load_policy
from engine.policy.policy import STATE_FILE
from engine.policy.types import AnswerCall, Request
from engine.problems.problem import CallTest, Problem
from tests.helpers.policies import tiny_config, tiny_policy

TEST = CallTest((1,), 2)
PROBLEM = Problem("plus-one", "Add one to a number.", "add", (TEST,), (TEST,))
FEEDBACK = Feedback("def add(x):\n    return x\n", (Report(Verdict.WRONG_ANSWER, "1", "2", "1"),))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return tiny_policy(folder / "oak", 1), tiny_policy(folder / "fern", 2, vocabulary=500)


def run_of(*agents, **settings):
    """A run whose agents have tiny settings where they set none."""
    given = tiny_config("-").model_dump(mode="json")["agents"][0]
    small = {key: given[key] for key in ("sampling", "optimizer")}
    return tiny_config(
        agents=[a if "shares_weights_with" in a else small | a for a in agents], **settings
    )


def host_of(*agents, seed=0, **settings):
    run = run_of(*agents, **settings)
    return PolicyHost([run.agents], run, [seed])


def rows_of(answers, advantages):
    generations = [answer.generation for written in answers.values() for answer in written]
    return [
        TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, a, g.policy_version, g.temperature)
        for g, a in zip(generations, advantages, strict=True)
    ]


ROLES = (
    {"name": "solver", "role": "Solve."},
    {"name": "critic", "shares_weights_with": "solver", "role": "Criticise."},
    {
        "name": "hot",
        "shares_weights_with": "solver",
        "sampling": {"temperature": 1.5, "top_p": 0.95},
    },
)


def roles(model, **settings):
    return ({**ROLES[0], "model": str(model), **settings}, *ROLES[1:])


def test_roles_read_their_own_prompt_and_learn_as_one(models):
    host = host_of(*roles(models[0]))
    group = host.policies["solver"]
    requested = {name: [Request(PROBLEM), Request(PROBLEM, FEEDBACK)] for name in group.agents}
    answers = host.answer(AnswerCall(requested))
    decode = group.loaded.tokenizer.decode
    prompts = {
        name: [decode(answer.generation.prompt_ids) for answer in written]
        for name, written in answers.items()
    }
    for name, role in (("solver", "Solve."), ("critic", "Criticise."), ("hot", "")):
        assert all((role in text) for text in prompts[name])
        assert all("Solve." not in text for text in prompts[name] if name != "solver")
        assert "return x" in prompts[name][1] and "return x" not in prompts[name][0]
    assert [a.generation.temperature for a in answers["hot"]] == [1.5, 1.5]

    # One update from the nodes of all three, each at the temperature that it was sampled at.
    stats = host.learn("solver", rows_of(answers, (1, -1, 1, -1, 1, -1)), 0.5)
    assert (stats.nodes, stats.version) == (6, 1)
    assert stats.mismatch < 1e-5
    assert [a.generation.policy_version for a in host.answer(AnswerCall(requested))["critic"]] == [
        1,
        1,
    ]
    sizes = host.sizes()
    assert sizes["solver"] == sizes["critic"] == sizes["hot"]
    assert sizes["hot"].total == sizes["hot"].trained == group.weights.model.num_parameters()


def test_answers_of_agents_that_sample_alike_are_those_of_one_batch(models):
    """Three roles with the same wording are one agent: draw for draw."""
    same = [{"name": n, "shares_weights_with": "one"} for n in ("two", "three")]
    host = host_of({"name": "one", "model": str(models[0])}, *same)
    alone = host_of({"name": "one", "model": str(models[0])})
    requests = [Request(PROBLEM), Request(PROBLEM, FEEDBACK)]
    together = host.answer(AnswerCall(dict.fromkeys(("one", "two", "three"), requests)))
    (single,) = alone.answer(AnswerCall({"one": requests * 3})).values()
    written = [answer.generation.output_ids for mine in together.values() for answer in mine]
    assert written == [answer.generation.output_ids for answer in single]


def test_a_group_is_saved_once_and_goes_on_exactly(models, tmp_path):
    hosts = [host_of(*roles(models[0])) for _ in range(2)]
    requested = {name: [Request(PROBLEM)] * 2 for name in hosts[0].policies["solver"].agents}
    hosts[0].learn("solver", rows_of(hosts[0].answer(AnswerCall(requested)), (1, -1) * 3), 0.2)
    hosts[0].end_step()
    hosts[0].save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["solver"]
    hosts[1].restore(tmp_path)
    for host in hosts:
        host.learn("solver", rows_of(host.answer(AnswerCall(requested)), (-1, 1) * 3), 0.4)
    one, two = (host.policies["solver"].weights for host in hosts)
    assert all(torch.equal(a, b) for a, b in zip(one.trained(), two.trained(), strict=True))


def test_a_frozen_partner_holds_one_copy_and_no_more(models, tmp_path):
    frozen = {"name": "partner", "model": str(models[0]), "trainable": False}
    run = run_of(frozen, {"name": "student", "model": str(models[1])})
    host = PolicyHost([run.agents[:1]], run, [0])
    group = host.policies["partner"]
    assert group.learner is None and not group.weights.trained()
    assert not any(weight.requires_grad for weight in group.weights.model.parameters())
    with group.weights.starting() as start, group.weights.current() as now:
        assert start is now
    assert host.sizes()["partner"].trained == 0

    requested = {"partner": [Request(PROBLEM)] * 3}
    host.answer(AnswerCall(requested))
    host.end_step()
    host.save(tmp_path)
    assert [path.name for path in (tmp_path / "partner").iterdir()] == [STATE_FILE]
    again = PolicyHost([run.agents[:1]], run, [1])
    assert again.restore(tmp_path) == []
    one, two = (
        [answer.generation.output_ids for answer in h.answer(AnswerCall(requested))["partner"]]
        for h in (host, again)
    )
    assert one == two


def test_an_agent_may_have_a_chat_template_of_its_own(models, tmp_path):
    file = tmp_path / "plain.jinja"
    file.write_text("{% for m in messages %}Q: {{ m.content }}\n{% endfor %}A: ")
    agent = {"name": "a", "model": str(models[0]), "chat_template": str(file), "role": "Solve."}
    host = host_of(agent)
    (answer,) = host.answer(AnswerCall({"a": [Request(PROBLEM)]}))["a"]
    tokenizer = host.policies["a"].loaded.tokenizer
    text = tokenizer.decode(answer.generation.prompt_ids)
    assert text.startswith("Q: Solve.\nQ: Add one") and text.endswith("A: ")
    host.save_model("a", tmp_path / "model")
    assert load_policy(str(tmp_path / "model")).tokenizer.chat_template == file.read_text()


def test_a_chat_template_that_cannot_write_the_prompts_is_refused(models, tmp_path):
    agent = {"name": "a", "model": str(models[0]), "chat_template": str(tmp_path / "none")}
    with pytest.raises(ModelError, match=r"agents\.a\.chat_template = .*none: .*give a Jinja"):
        check_agent(run_of(agent).agents[0])
    broken = tmp_path / "broken.jinja"
    broken.write_text("{% for")
    with pytest.raises(ModelError, match=r"agents\.a\.chat_template cannot write a prompt"):
        host_of(agent | {"chat_template": str(broken)})
    broken.write_text("Write a program.")
    with pytest.raises(ModelError, match=r"a\.chat_template writes the same prompt for every stat"):
        host_of(agent | {"chat_template": str(broken)})
    broken.write_bytes(b"\xef\xbb\xbf{{ messages[0].content }}")
    with pytest.raises(ModelError, match=r"a\.chat_template = .* begins with a byte order mark; s"):
        check_agent(run_of(agent | {"chat_template": str(broken)}).agents[0])
    no_system = tmp_path / "strict.jinja"
    no_system.write_text(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system message') }}"
        "{% endif %}{{ messages[0].content }}"
    )
    host_of(agent | {"chat_template": str(no_system)})
    with pytest.raises(ModelError, match="with a role: TemplateError: no system message"):
        host_of(agent | {"chat_template": str(no_system), "role": "Solve."})
