"""Tests of model directories by strangers: whatever their settings name, nothing outside is opened,
and nothing is allocated that their weights do not warrant."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPTNeoConfig, MixtralConfig

from engine.policy.models.load import ModelError, check_model_directory, load_policy
from engine.policy.models.shard_loading import empty_model
from tests.helpers.policies import tiny_policy
from tests.helpers.waiting import patience

FILES = ("config.json", "generation_config.json", "tokenizer_config.json",
         "special_tokens_map.json", "adapter_config.json")  # fmt: skip
MARK = "the-key-of-the-server"


def edit(folder, name, **settings):
    file = folder / name
    old = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(old | settings))


@pytest.fixture
def model(tmp_path):
    return tiny_policy(tmp_path / "model")


@pytest.fixture
def secret(tmp_path):
    """A file of the server's account, one word per line as a vocabulary has them."""
    file = tmp_path / "account" / "key"
    file.parent.mkdir()
    file.write_text(f"[UNK]\n{MARK}\n")
    return file


@pytest.mark.parametrize("kind", ["BertTokenizer", "BertTokenizerFast", "GPT2Tokenizer"])
def test_no_line_of_a_file_becomes_a_token(model, secret, kind):
    edit(model, "tokenizer_config.json", tokenizer_class=kind, vocab=str(secret),
         vocab_file=str(secret), fast_tokenizer_files=["tokenizer.4.0.0.json"],
         tokenizer_file=str(secret), init_inputs=[str(secret)])  # fmt: skip
    before = len(load_policy("starter:oak").tokenizer)
    tokenizer = load_policy(str(model)).tokenizer
    assert not [token for token in tokenizer.get_vocab() if MARK in token]
    assert 0 < len(tokenizer) <= before and tokenizer.decode([5, 6])


@pytest.mark.large
@pytest.mark.slow
def test_no_key_of_any_file_opens_another(model, secret, tmp_path):
    """Every key that transformers and peft know, with a path and with the name of a class."""
    command = [sys.executable, "-m", "tests.engine.policy.watched", str(tmp_path), str(secret)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=900 * patience(), env=environment
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["opened"] == [] and seen["opens of the secret"] == 0
    assert seen["files"] == sorted(FILES) and seen["keys"] > 2000 and seen["loaded"] > 50


ENDS = {"vocab_size": 400, "bos_token_id": 1, "eos_token_id": 1}
GPT2 = GPT2Config(n_positions=64, n_embd=32, n_layer=2, n_head=2, **ENDS)
NEO = GPTNeoConfig(hidden_size=32, num_layers=2, num_heads=2, max_position_embeddings=64,
                   attention_types=[[["global", "local"], 1]], **ENDS)  # fmt: skip
MIXTRAL = MixtralConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                        num_attention_heads=2, num_key_value_heads=2, num_local_experts=2,
                        **ENDS)  # fmt: skip
LARGE = {
    "layers": (None, {"num_hidden_layers": 10**9}, "num_hidden_layers = 1,000,000,000"),
    "a width": (None, {"hidden_size": 2**20}, "hidden_size = 1,048,576"),
    "a vocabulary": (None, {"vocab_size": 2**30}, "vocab_size = 1,073,741,824"),
    "an inner layer": (None, {"intermediate_size": 2**30}, "1,073,741,824"),
    "heads": (None, {"num_key_value_heads": 2**20}, "describes more than"),
    "width of a head": (None, {"head_dim": 2**24}, "describes more than"),
    "learned positions": (GPT2, {"n_positions": 2**31}, "n_positions = 2,147,483,648"),
    "a mask of positions": (NEO, {"max_position_embeddings": 2**14}, "describes more than"),
    "kinds of layers": (NEO, {"attention_types": [[["global"], 10**9]]}, "attention_types"),
    "layers at the start": (MIXTRAL, {"first_k_dense_replace": 10**9}, "first_k_dense_replace"),
    "experts": (MIXTRAL, {"num_local_experts": 10**9}, "describes more than"),
    "a part": (None, {"text_config": {"num_hidden_layers": 10**9}}, "num_hidden_layers"),
}


@pytest.mark.parametrize("what", LARGE)
def test_sizes_beyond_the_weights_are_refused_before_anything_is_built(model, what):
    config, sizes, reason = LARGE[what]
    if config is not None:
        AutoModelForCausalLM.from_config(config).save_pretrained(model)
    load_policy(str(model))
    edit(model, "config.json", **sizes)
    for load in (load_policy, lambda folder: empty_model(folder, torch.float32)):
        with pytest.raises(ModelError) as refusal:
            load(str(model) if load is load_policy else model)
        if "of another shape" in str(refusal.value):
            assert load is load_policy  # by the names and shapes alone, nothing is built
            continue
        assert f"{model / 'config.json'}: " in str(refusal.value)
        assert reason in str(refusal.value) and "; give the config.json of" in str(refusal.value)


def test_labels_of_a_classifier_are_not_written_out(model):
    edit(model, "config.json", num_labels=10**12, id2label={"0": "x"})
    assert load_policy(str(model)).model.config.num_labels < 10


def test_a_folder_with_an_adapter_besides_is_refused_and_its_base_never_loaded(model, tmp_path):
    other = tiny_policy(tmp_path / "other", seed=7)
    settings = {"peft_type": "LORA", "base_model_name_or_path": str(other)}
    edit(model, "adapter_config.json", **settings)
    save_file({}, model / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="is an adapter alongside a whole model") as refusal:
        load_policy(str(model))
    assert str(other) not in str(refusal.value)


def test_an_adapter_of_a_rank_beyond_its_weights_is_refused(model, tmp_path):
    adapter = tmp_path / "adapted"
    adapter.mkdir()
    edit(adapter, "adapter_config.json", peft_type="LORA", base_model_name_or_path=str(model),
         r=10**9, target_modules=["q_proj"])  # fmt: skip
    save_file({"a": torch.zeros(2, 32)}, adapter / "adapter_model.safetensors")
    with pytest.raises(ModelError, match=r"adapter_config\.json: r = 1000000000 is no rank"):
        load_policy(str(adapter))
    assert check_model_directory(str(model)) == model
