"""Tests of LoRA: one frozen base under several adapters, each trained, saved and loaded alone."""

import json
import shutil
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from engine.config.agents import SamplingConfig
from engine.policy.host import PolicyHost
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.adapters import MERGED_FROM
from engine.policy.models.load import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    ModelError,
    check_agent,
    check_model_directory,
    load_policy,
)
from engine.policy.models.weights import checkpoint_tensors
from engine.policy.policy import STATE_FILE
from tests.helpers.policies import tiny_config, tiny_policy

PROMPTS = [[5, 6, 7], [9] * 30, [11, 12], [5, 6, 7, 8]]
LORA = {"rank": 4, "alpha": 16.0}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_policy(tmp_path_factory.mktemp("models") / "base", 3)


def host_of(base, *loras, **settings):
    """A host of one agent per adapter over the base, agent-0 and so on; None is a frozen one."""
    agents = tiny_config(*[base] * len(loras)).model_dump(mode="json")["agents"]
    for agent, lora in zip(agents, loras, strict=True):
        agent |= {"lora": lora, "trainable": lora is not None}
        agent["optimizer"]["learning_rate"] = 1e-2
    run = tiny_config(agents=agents, **settings)
    return PolicyHost([[agent] for agent in run.agents], run, seeds=range(len(loras)))


def teach(host, name, updates=1):
    """Real updates from answers that the policy generates itself."""
    group = host.policies[name]
    for _ in range(updates):
        with group.weights.current():
            written = group.generator.generate(
                PROMPTS, SamplingConfig(max_new_tokens=10), group.version
            )
        advantages = (1.0, -1.0, 0.5, -0.5)
        stats = host.learn(
            name,
            [
                TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, a, g.policy_version)
                for g, a in zip(written, advantages, strict=True)
            ],
            0.5,
        )
    return stats


def logprobs(view):
    """Log-probs of fixed tokens, under the model that a context provides."""
    rows = [TrainingRow(prompt, [20, 21, 22], [0.0] * 3, 0.0, 0) for prompt in PROMPTS]
    with view as model, torch.no_grad():
        return output_logprobs(model, pad_rows(rows, 0, "cpu"))[0]


def test_weights_for_other_generators_hold_the_adapter_that_is_at_work_and_no_other(base):
    host = host_of(base, LORA, LORA)
    teach(host, "agent-0", 2)
    teach(host, "agent-1", 3)
    results = []
    for name in ("agent-0", "agent-1"):
        weights = host.policies[name].weights
        for view in (weights.current, weights.starting):
            with view() as model:
                tensors = dict(checkpoint_tensors(model, untied=True))
            plain = load_policy(str(base)).model
            assert set(tensors) == set(plain.state_dict())
            assert set(tensors) - set(dict(checkpoint_tensors(model))) == {"lm_head.weight"}
            plain.load_state_dict(tensors)
            results.append(logprobs(nullcontext(plain)))
            assert torch.allclose(logprobs(view()), results[-1], atol=1e-4)
    first, start, second, _ = results
    assert (first - start).abs().max() > 0.01 < (second - first).abs().max()


def test_adapters_share_one_base_that_nothing_changes(base):
    host = host_of(base, LORA, LORA)
    one, two = (host.policies[name].weights for name in ("agent-0", "agent-1"))
    plain = load_policy(str(base)).model
    assert one.model is two.model
    assert host.sizes()["agent-0"].total == plain.num_parameters() + host.sizes()["agent-0"].trained
    assert host.sizes()["agent-0"].trained < plain.num_parameters() / 2
    start = logprobs(one.current())
    assert torch.equal(start, logprobs(one.starting()))  # B is 0 at the start

    teach(host, "agent-0", 3)
    assert not torch.equal(logprobs(one.current()), start)
    assert torch.equal(logprobs(two.current()), start)
    assert torch.equal(logprobs(one.starting()), start)
    after_one = logprobs(one.current())
    teach(host, "agent-1")
    assert torch.equal(logprobs(one.current()), after_one)
    assert not torch.equal(logprobs(two.current()), start)
    frozen = {n.replace(".base_layer", ""): p for n, p in one.model.named_parameters()}
    for name, weight in plain.named_parameters():
        assert torch.equal(frozen[name], weight), name


def test_a_frozen_agent_is_the_base_that_the_adapters_share(base, tmp_path):
    host = host_of(base, None, LORA)
    frozen, thin = (host.policies[name].weights for name in ("agent-0", "agent-1"))
    start = logprobs(frozen.current())
    teach(host, "agent-1", 2)
    assert frozen.model is thin.model and host.sizes()["agent-0"].trained == 0
    assert torch.equal(logprobs(frozen.current()), start)
    assert torch.equal(logprobs(frozen.starting()), start)
    assert not torch.equal(logprobs(thin.current()), start)
    host.save(tmp_path)
    assert [path.name for path in (tmp_path / "agent-0").iterdir()] == [STATE_FILE]
    host.restore(tmp_path)
    assert torch.equal(logprobs(frozen.current()), start)


def test_only_the_adapter_has_an_optimizer_and_the_divergence_is_from_the_base(base):
    host = host_of(base, LORA)
    group = host.policies["agent-0"]
    first, second = teach(host, "agent-0"), teach(host, "agent-0")
    assert first.kl == pytest.approx(0.0, abs=1e-7) and second.kl > 1e-5
    assert second.mismatch < 1e-4
    held = [p for options in group.learner.optimizers.own.param_groups for p in options["params"]]
    trained = {id(p) for p in group.weights.trained()}
    assert {id(p) for p in held} == trained and len(held) == 2 * 7 * 2  # A and B, 7 layers of 2
    assert all((p.grad is None) == (id(p) not in trained) for p in group.weights.model.parameters())


def test_an_adapter_goes_on_exactly_where_it_was_saved(base, tmp_path):
    lora = LORA | {"dropout": 0.1}
    one = host_of(base, lora, LORA)
    teach(one, "agent-0", 2)
    teach(one, "agent-1")
    one.end_step()
    one.save(tmp_path)
    files = {path.name for path in (tmp_path / "agent-0").iterdir()}
    assert {ADAPTER_CONFIG, ADAPTER_WEIGHTS, "tokenizer.json"} < files
    assert "model.safetensors" not in files

    def go_on(host):
        teach(host, "agent-0", 2)
        teach(host, "agent-1")
        return [p.clone() for group in host.policies.values() for p in group.weights.trained()]

    first = go_on(one)
    two = host_of(base, lora, LORA)
    two.restore(tmp_path)
    second = go_on(two)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_final_model_is_whole_and_keeps_its_adapter_as_peft_reads_it(base, tmp_path):
    host = host_of(base, LORA, {"rank": 2, "target_modules": ["q_proj", "v_proj"]})
    weights = host.policies["agent-1"].weights
    teach(host, "agent-1", 3)
    host.save_model("agent-1", tmp_path)
    trained, start = logprobs(weights.current()), logprobs(weights.starting())
    assert (trained - start).abs().max() > 1e-3

    merged = load_policy(str(tmp_path))
    assert torch.allclose(logprobs(nullcontext(merged.model)), trained, atol=1e-5)
    plain = AutoModelForCausalLM.from_pretrained(base)
    theirs = PeftModel.from_pretrained(plain, tmp_path / MERGED_FROM).eval()
    assert torch.allclose(logprobs(nullcontext(theirs)), trained, atol=1e-6)
    ours = load_policy(str(tmp_path / MERGED_FROM))
    assert torch.allclose(logprobs(nullcontext(ours.model)), trained, atol=1e-5)
    assert ours.end_ids == merged.end_ids

    # It can start another run, which trains adapters again or all weights.
    again = host_of(tmp_path / MERGED_FROM, LORA)
    assert torch.allclose(logprobs(again.policies["agent-0"].weights.current()), trained, atol=1e-5)


@pytest.fixture
def adapter(base, tmp_path):
    host = host_of(base, LORA)
    teach(host, "agent-0")
    host.policies["agent-0"].weights.save(tmp_path / "adapter")
    return tmp_path / "adapter"


def edit(directory, **settings):
    file = directory / ADAPTER_CONFIG
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"base_model_name_or_path": "/nowhere"}, "its base: model = /nowhere"),
        ({"base_model_name_or_path": None}, "must name the directory of its base"),
        ({"peft_type": "IA3"}, "only LORA is loaded"),
        ({"megatron_config": {"a": 1}}, "megatron_config is no setting of plain LoRA"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is no setting"),
        ({"target_modules": ["q_proj"]}, "do not use"),
        ({"target_modules": ["birch"]}, "birch"),
        ({"r": 8}, "size mismatch"),
    ],
    ids=str,
)
def test_an_adapter_that_cannot_be_loaded_is_refused_with_the_reason(adapter, settings, reason):
    edit(adapter, **settings)
    with pytest.raises(ModelError, match=reason) as caught:
        load_policy(str(adapter))
    assert ADAPTER_CONFIG in str(caught.value) or ADAPTER_WEIGHTS in str(caught.value)


def test_an_adapter_may_have_the_settings_of_its_base(base, adapter):
    expected = logprobs(nullcontext(load_policy(str(adapter)).model))
    shutil.copy(base / "config.json", adapter)
    assert torch.equal(logprobs(nullcontext(load_policy(str(adapter)).model)), expected)


def test_an_adapter_alongside_a_whole_model_is_refused(base, adapter, tmp_path):
    both = shutil.copytree(base, tmp_path / "both")
    shutil.copy(adapter / ADAPTER_WEIGHTS, both)
    for settings in (False, True):
        if settings:
            shutil.copy(adapter / ADAPTER_CONFIG, both)
        with pytest.raises(ModelError, match=f"{ADAPTER_WEIGHTS}: is an adapter alongside a whole"):
            check_model_directory(str(both))
    (both / ADAPTER_WEIGHTS).unlink()
    check_model_directory(str(both))  # merged, with the settings of what was merged
    (adapter / ADAPTER_CONFIG).unlink()
    with pytest.raises(ModelError, match=r"is an adapter without its settings; add adapter_config"):
        check_model_directory(str(adapter))


def test_adapters_in_a_circle_and_damaged_ones_are_refused(adapter):
    weights = (adapter / ADAPTER_WEIGHTS).read_bytes()
    (adapter / ADAPTER_WEIGHTS).write_bytes(weights[:-50])
    with pytest.raises(ModelError, match=ADAPTER_WEIGHTS):
        check_model_directory(str(adapter))
    edit(adapter, base_model_name_or_path=str(adapter))
    with pytest.raises(ModelError, match="more than 8 on one another"):
        check_model_directory(str(adapter))


def test_modules_that_the_model_has_not_are_refused(base):
    with pytest.raises(ModelError, match=r"agents\.agent-0\.lora\.target_modules = \['birch'\]"):
        host_of(base, {"target_modules": ["birch"]})


def test_without_the_extra_an_agent_with_adapters_is_refused_with_the_remedy(base):
    agent = tiny_config(base).agents[0].model_dump(mode="json") | {"lora": LORA}
    # None in sys.modules makes Python treat a package as not installed.
    program = (
        "import json, sys; sys.modules['peft'] = None\n"
        "from engine.config.schema import AgentConfig\n"
        "from engine.policy.models.load import check_agent\n"
        "check_agent(AgentConfig(**json.loads(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(agent)], capture_output=True, text=True
    )
    assert "agents.agent-0.lora needs the extra `lora`: pip install" in done.stderr
    check_agent(tiny_config(agents=[agent]).agents[0])


def test_in_bfloat16_the_adapters_learn_in_full_precision(base):
    host = host_of(base, LORA, compute={"dtype": "bfloat16"})
    stats = teach(host, "agent-0", 2)
    group = host.policies["agent-0"]
    assert group.weights.model.dtype == torch.bfloat16
    assert all(p.dtype == torch.float32 for p in group.weights.trained())
    assert stats.mismatch < 0.02
    assert stats.gradient_norm > 0
