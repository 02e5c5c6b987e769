"""Tests of the integrations with trainers, each against the real library with a tiny model."""

from __future__ import annotations

import base64
import io

import PIL.Image
import pytest
import torch

import grove
from engine.policy.starters import starter_directory
from tests.helpers.extras import needed
from tests.webapp.client.conftest import tracked
from webapp.client import Grove
from webapp.telemetry.models import Event, Metric
from webapp.telemetry.selectors import folded

pytestmark = pytest.mark.large

QUIET = {
    "use_cpu": True, "report_to": "none", "save_strategy": "no", "disable_tqdm": True,
    "logging_steps": 1, "dataloader_pin_memory": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    needed("trl", "pip install 'grove-rl[bench]'")
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(starter_directory("oak"))


@pytest.fixture
def model(tokenizer):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 128}
    return LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **shape, **heads))


def rows(tokenizer):
    from datasets import Dataset

    ids = tokenizer("one two three four")["input_ids"]
    return Dataset.from_list([{"input_ids": ids, "labels": ids}] * 8)


def test_a_training_of_transformers_is_logged_by_its_names(here, model, tokenizer, tmp_path):
    from transformers import Trainer, TrainingArguments

    from grove.integrations.transformers import GroveCallback

    args = TrainingArguments(
        str(tmp_path), run_name="tiny", max_steps=3, learning_rate=0.01, **QUIET
    )
    data = rows(tokenizer)
    callback = GroveCallback(id="trainer")
    trainer = Trainer(model, args, train_dataset=data, eval_dataset=data, callbacks=[callback])
    trainer.train()
    loss = trainer.evaluate()["eval_loss"]
    grove.finish()
    run = tracked("trainer")
    assert (run.state, run.step, run.steps) == ("finished", 3, 3)
    assert run.experiment.name == "tiny"
    config = run.tracking.config
    assert config["learning_rate"] == 0.01 and config["num_hidden_layers"] == 2
    assert config["model/num_parameters"] == model.num_parameters()
    newest = dict(Metric.objects.filter(run=run).values_list("name", "value"))
    assert newest["logged.eval~1loss"] == pytest.approx(loss)
    losses = [one["loss"] for one in trainer.state.log_history if "loss" in one]
    with Grove(here.address, here.token) as client:
        points = client.points(str(run.pk), "logged.train~1loss")
    assert points.step == [1, 2, 3] and points.value == pytest.approx(losses)


def test_stop_on_the_page_ends_the_training(here, model, tokenizer, tmp_path):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from grove.integrations.transformers import GroveCallback

    class Stopping(TrainerCallback):
        """Presses Stop after the first step, and waits until the program knows."""

        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 1:
                with Grove(here.address, here.token) as client:
                    client.stop(str(tracked("stopped").pk))
                callback.run._background.sender.report()

    callback = GroveCallback(id="stopped")
    args = TrainingArguments(str(tmp_path), max_steps=50, **QUIET)
    both = [callback, Stopping()]
    trainer = Trainer(model, args, train_dataset=rows(tokenizer), callbacks=both)
    trainer.train()
    grove.finish()
    assert trainer.state.global_step == 2 and tracked("stopped").state == "stopped"


def letters(completions, **_):
    """Reward: 1 for an answer with many different letters, else less; none for every fourth."""
    rewards = [min(1.0, len(set(one)) / 12) for one in completions]
    return [None if index % 4 == 3 else one for index, one in enumerate(rewards)]


def test_groups_of_trl_become_trees_with_their_rewards_and_advantages(
    here,
    model,
    tokenizer,
    tmp_path,
):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from grove.integrations.trl import follow

    args = GRPOConfig(
        str(tmp_path), max_steps=3, per_device_train_batch_size=8, num_generations=4, bf16=False,
        max_completion_length=8, gradient_checkpointing=False, shuffle_dataset=False, **QUIET,
    )  # fmt: skip
    prompts = Dataset.from_list([{"prompt": f"Write {index}"} for index in range(6)])
    trainer = GRPOTrainer(
        model, letters, args=args, train_dataset=prompts, processing_class=tokenizer
    )
    follow(trainer, id="groups")
    trainer.train()
    logs = {name: list(trainer._logs[name]) for name in ("prompt", "completion", "advantages")}
    rewards = list(trainer._logs["rewards"]["letters"])
    grove.finish()
    run = tracked("groups")
    assert (run.state, run.step) == ("finished", 3)
    opened = Event.objects.filter(run=run, kind="tree.open").order_by("seq")
    assert [(one.payload["step"], one.payload["statement"]) for one in opened] == [
        (1 + index // 2, f"Write {index}") for index in range(6)
    ]
    trees = [tree for tree in folded(run)["trees"] if tree["step"] == 3]
    assert [tree["statement"] for tree in trees] == logs["prompt"][::4] and len(trees) == 2
    nodes = [node for tree in trees for node in tree["nodes"]]
    assert [node["program"] for node in nodes] == logs["completion"]
    assert [node["parent"] for node in nodes] == [0] * 8
    for node, reward, advantage in zip(nodes, rewards, logs["advantages"], strict=True):
        assert node["closed"] and node["tokens"] in range(1, 9)
        if reward != reward:  # NaN: no reward function returned one
            assert node["score"] is None and node["advantage"] is None
        else:
            assert node["score"] == pytest.approx(reward)
            assert node["advantage"] == pytest.approx(advantage)
    with Grove(here.address, here.token) as client:
        means = client.points(str(run.pk), "reward").value
        logged = client.points(str(run.pk), "logged.train~1reward").value
    assert means == pytest.approx(logged, abs=1e-5)


def test_a_trainer_without_groups_is_refused_by_name(model, tokenizer, tmp_path):
    from transformers import Trainer, TrainingArguments

    from grove.integrations.trl import Unsupported, follow

    trainer = Trainer(model, TrainingArguments(str(tmp_path), **QUIET))
    with pytest.raises(Unsupported, match="_calculate_rewards"):
        follow(trainer)


def test_a_tensor_of_torch_is_a_picture_with_its_channels_first(tmp_path):
    pixels = torch.zeros(3, 8, 5)
    pixels[1] = 1.0
    image = grove.Image(pixels, caption="green").as_json()
    content = base64.b64decode(image["data"])
    with PIL.Image.open(io.BytesIO(content)) as opened:
        assert opened.size == (5, 8) and opened.getpixel((4, 7)) == (0, 255, 0)
