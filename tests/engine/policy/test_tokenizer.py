"""Tests that the engine's tokenizers write and read as transformers' own loader makes them."""

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

from engine.config.model_settings import refuse_unknown
from engine.config.schema import STARTERS
from engine.policy.models.load import ModelError
from engine.policy.models.tokenizer import load_tokenizer
from engine.policy.starters import starter_directory
from tests.engine.policy.gguf.test_tokenizers import imported
from tests.engine.policy.gguf.vocabularies import byte_level, pieces

NAMES = sorted(path.parent.name for path in STARTERS.glob("*/lineage.json"))
TEXTS = [
    "", " a", "def add(numbers):\n    return sum(numbers)\n", "x <|end|> y<s>z</s> <mask>  [X]",
    "été 你好 🙂 \u00a0 1234567", " do n't , they 're .",
]  # fmt: skip
CHAT = [{"role": "user", "content": "Add them."}, {"role": "assistant", "content": "a + b"}]
FAMILIES = {
    # As Llama 3 and Qwen publish theirs: byte-level, with the added tokens in the settings too.
    "byte-level": (
        pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel(),
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>",
         "pad_token": None, "clean_up_tokenization_spaces": True, "model_max_length": 131072,
         "model_input_names": ["input_ids", "attention_mask"], "padding_side": "left",
         "additional_special_tokens": ["<mask>"], "split_special_tokens": False,
         "added_tokens_decoder": {
             "0": {"content": "<s>", "lstrip": False, "normalized": False, "rstrip": False,
                   "single_word": False, "special": True},
             "1": {"content": "</s>", "lstrip": False, "normalized": False, "rstrip": True,
                   "single_word": False, "special": True}}},
        None),
    # As older ones: no list of added tokens, special tokens in a file of their own.
    "a special tokens map": (
        pre_tokenizers.Metaspace(), decoders.Metaspace(),
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1e30, "legacy": False},
        {"bos_token": {"content": "<s>", "lstrip": False, "normalized": False, "rstrip": False,
                       "single_word": False},
         "eos_token": "</s>", "unk_token": "<unk>", "additional_special_tokens": ["[X]"]}),
    "tokens by name": (
        pre_tokenizers.Metaspace(), decoders.Metaspace(),
        {"eos_token": {"__type": "AddedToken", "content": "</s>", "special": True},
         "pad_token": "<pad-of-mine>", "image_token": "<mask>",
         "extra_special_tokens": {"boi_token": "[X]"}, "add_bos_token": True,
         "chat_template": "{{ messages }}"},
        None),
    "several templates": (
        pre_tokenizers.Whitespace(), None,
        {"eos_token": "</s>", "extra_special_tokens": ["<mask>", "[X]"],
         "chat_template": [{"name": "default", "template": "{{ eos_token }}{{ messages }}"},
                           {"name": "tools", "template": "-"}]},
        None),
}  # fmt: skip


def a_tokenizer(folder, split, decoder, settings, special):
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = split
    if decoder:
        backend.decoder = decoder
    trainer = trainers.BpeTrainer(
        vocab_size=300, show_progress=False, special_tokens=["<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    backend.train_from_iterator(TEXTS, trainer)
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
    )
    folder.mkdir(exist_ok=True)
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text('{"model_type": "llama"}')
    if special:
        (folder / "special_tokens_map.json").write_text(json.dumps(special))
    if "chat_template" not in settings:
        text = "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
        (folder / "chat_template.jinja").write_text(text)
    return folder


def require_the_same(folder):
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        for special in (True, False):
            ids = ours(text, add_special_tokens=special).input_ids
            assert ids == theirs(text, add_special_tokens=special).input_ids, text
            for skip in (True, False):
                written = ours.decode(ids, skip_special_tokens=skip)
                assert written == theirs.decode(ids, skip_special_tokens=skip)
    for tokens in (False, True):
        options = {"tokenize": tokens, "add_generation_prompt": True, "return_dict": False}
        rendered = ours.apply_chat_template(CHAT, **options)
        assert rendered == theirs.apply_chat_template(CHAT, **options)
    for name in ("special_tokens_map", "all_special_ids", "model_max_length", "padding_side",
                 "added_tokens_decoder", "eos_token_id", "pad_token_id"):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(ours) == len(theirs)
    return ours


@pytest.mark.parametrize("name", NAMES)
def test_the_starters_have_the_same_tokenizers(name):
    require_the_same(starter_directory(name))


@pytest.mark.parametrize("vocabulary", [byte_level("llama-bpe"), pieces()], ids=["gpt2", "llama"])
def test_converted_gguf_files_have_the_same_tokenizers(vocabulary, tmp_path):
    imported(tmp_path, vocabulary)
    require_the_same(tmp_path / "imported")


@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizers_as_they_are_published_are_the_same(family, tmp_path):
    folder = a_tokenizer(tmp_path / "model", *FAMILIES[family])
    ours = require_the_same(folder)
    ours.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "llama"}')
    saved = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    refuse_unknown("tokenizer_config.json", saved)
    again = require_the_same(tmp_path / "saved")
    assert again(TEXTS[3]).input_ids == ours(TEXTS[3]).input_ids


@pytest.mark.parametrize(
    ("file", "key", "value", "reason"),
    [
        ("tokenizer_config.json", "eos_token", "x" * 1001, "1,001 characters, 1,000 at most"),
        ("tokenizer_config.json", "extra_special_tokens", [f"<{n}>" for n in range(100_001)],
         "100,001 tokens, 100,000 at most"),
        ("tokenizer_config.json", "eos_token", ["</s>"], "eos_token = ['</s>'] is no token"),
        ("tokenizer_config.json", "padding_side", "../up", "padding_side = '../up' must be a"),
        ("tokenizer.json", "added_tokens", [{"id": 1, "content": "x" * 1001}], "1,001 characters"),
        ("tokenizer.json", "model", {"type": "BPE", "vocab": {"y" * 4001: 0}, "merges": []},
         "model.vocab: the token 'yyyy"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_tokens_without_measure_are_refused_by_name(file, key, value, reason, tmp_path):
    folder = a_tokenizer(tmp_path / "model", *FAMILIES["byte-level"])
    settings = json.loads((folder / file).read_text()) | {key: value}
    (folder / file).write_text(json.dumps(settings))
    with pytest.raises(ModelError) as refusal:
        load_tokenizer(folder)
    assert str(folder / file) in str(refusal.value) and reason in str(refusal.value)
