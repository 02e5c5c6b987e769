"""Tests of imported tokenizers against transformers' own conversion, SentencePiece, and the
pre-tokenizers of the models that the names were made for."""

from __future__ import annotations

import json

import pytest
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

from engine.policy.models.gguf.convert import convert
from engine.policy.models.gguf.tokenizer.pre_tokenizers import SPLITTINGS
from engine.policy.models.load import ModelError, load_policy
from tests.engine.policy.gguf.tiny import content_of, tiny_model
from tests.engine.policy.gguf.vocabularies import byte_level, pieces, trained_pieces

TEXTS = [
    "",
    " ",
    "a",
    "def add(numbers):\n    return sum(numbers)\n\n",
    "for i in range(10):\n\tprint(i ** 2)  # 3.14159e-10\r\n        break",
    "It's they'll WE'RE can't 'S don't",
    "1 12 123 1234 12345 x1y22z333 ٣٤ ² ½",
    "été naïve 你好，世界 🙂👩‍👩‍👧 Ω≈ç√ \u00a0\u200b e\u0301",
    "     leading and  double   triple    spaces   ",
    "\n\n\n  \n\t\t\n",
    "<|im_start|>user\nHi <think>x</think><|im_end|>\n<|im_start|>assistant\n",
    "<html><b>[x]</b>$a+b=c^2~|</html>",
    "\x00\x01\x7f \ufeff",
]


def imported(tmp_path, vocabulary, architecture="llama"):
    """Returns the tokenizer of an imported file, which is `tmp_path/tiny.gguf`."""
    model = tiny_model(
        architecture, len(vocabulary.get("tokenizer.ggml.tokens", "x")), num_hidden_layers=1
    )
    content = content_of(model, architecture, "Q8_0", vocabulary)
    content.values["general.name"] = "tiny"
    content.write(tmp_path / "tiny.gguf")
    convert(tmp_path / "tiny.gguf", tmp_path / "imported")
    return load_policy(str(tmp_path / "imported")).tokenizer


@pytest.mark.parametrize(
    ("pre", "architecture"),
    [("gpt-2", "llama"), ("llama-bpe", "llama"), ("llama3", "llama"), ("qwen2", "qwen2"),
     ("qwen2", "qwen3"), ("deepseek-r1-qwen", "qwen2")],
)  # fmt: skip
def test_ids_are_those_of_transformers(pre, architecture, tmp_path):
    ours = imported(tmp_path, byte_level(pre), architecture)
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file="tiny.gguf")
    for text in TEXTS:
        if ours.backend_tokenizer.normalizer is not None:
            text = ours.backend_tokenizer.normalizer.normalize_str(text)  # theirs has none
        ids = ours(text, add_special_tokens=False).input_ids
        assert ids == theirs(text, add_special_tokens=False).input_ids, text
        assert ours.decode(ids) == text


def _published(pre):
    """Returns normalizer and pre-tokenizer as published in the tokenizer.json of SmolLM2, GPT-2,
    Llama 3 and Qwen2.5; of `default`, which no model has, as in llama.cpp's source."""
    contractions = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    rest = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    words = r"|[^\r\n\p{L}\p{N}]?\p{L}+|"

    def split(pattern):
        return pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False)

    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return {
        "smollm": (None, [pre_tokenizers.Digits(individual_digits=True), gpt2]),
        "gpt-2": (None, [gpt2]),
        "llama-bpe": (None, [split(contractions + words + r"\p{N}{1,3}" + rest), plain]),
        "qwen2": (normalizers.NFC(), [split(contractions + words + r"\p{N}" + rest), plain]),
        "default": (
            None,
            [split(r"[\p{P}\$\+<=>\^~\|]+"), gpt2_expression(split), split(r"\p{N}+"),
             split(r"[0-9][0-9][0-9]"), plain],
        ),
    }[pre]  # fmt: skip


def gpt2_expression(split):
    return split(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)")


@pytest.mark.parametrize("pre", ["smollm", "gpt-2", "llama-bpe", "qwen2", "default"])
def test_texts_are_cut_as_published(pre, tmp_path):
    vocabulary = byte_level(None if pre == "default" else pre)
    ours = imported(tmp_path, vocabulary)
    tokens = vocabulary["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in vocabulary["tokenizer.ggml.merges"]]
    expected = Tokenizer(
        models.BPE(
            {token: index for index, token in enumerate(tokens)},
            merges,
            ignore_merges=pre == "llama-bpe",
        )
    )
    normalizer, parts = _published(pre)
    if normalizer is not None:
        expected.normalizer = normalizer
    expected.pre_tokenizer = pre_tokenizers.Sequence(parts)
    for text in TEXTS:
        if "<|" not in text:
            assert ours(text, add_special_tokens=False).input_ids == expected.encode(text).ids, text


@pytest.mark.parametrize(("pre", "whole"), [("llama-bpe", True), ("gpt-2", False)])
def test_a_piece_that_no_merges_make_is_a_token_for_llama_3_alone(pre, whole, tmp_path):
    vocabulary = byte_level(pre)
    tokens, merges = (vocabulary[f"tokenizer.ggml.{name}"] for name in ("tokens", "merges"))
    token = max((one for one in tokens if one.isascii() and one.isalpha()), key=len)
    vocabulary["tokenizer.ggml.merges"] = [m for m in merges if m.replace(" ", "") != token]
    assert len(vocabulary["tokenizer.ggml.merges"]) < len(merges)
    ids = imported(tmp_path, vocabulary)(token, add_special_tokens=False).input_ids
    assert (ids == [tokens.index(token)]) is whole


def test_pre_tokenizers_differ_where_they_must(tmp_path):
    cuts = {}
    for pre, splitting in SPLITTINGS.items():
        pieces = splitting.pre_tokenizer(False).pre_tokenize_str("x 12345 WE'RE\n\n a")
        cuts[pre] = tuple(piece for piece, _ in pieces)
    assert [cut for cut in cuts["smollm"] if cut.isdigit()] == list("12345")
    assert "123" in cuts["llama-bpe"]
    assert "Ġ12345" in cuts["gpt-2"]
    assert [cut for cut in cuts["qwen2"] if cut.isdigit()] == list("12345")
    assert len({cuts[pre] for pre in ("smollm", "llama-bpe", "qwen2", "gpt-2", "default")}) == 5


@pytest.mark.parametrize("prefix", [False, True])
def test_pieces_are_those_of_sentencepiece(prefix, tmp_path):
    ours = imported(tmp_path, pieces(prefix=prefix), "gemma3")
    trained = trained_pieces(prefix=prefix)
    texts = [text for text in TEXTS if text and "\x00" not in text]
    texts += ["<start_of_turn>user\n\nHi", "def f():\n" + " " * 23 + "x", "a" * 500, "\t\n \n"]
    for text in texts:
        ids = ours(text, add_special_tokens=False).input_ids
        assert ids == trained.encode(text), text
        assert ours.decode(ids) == text
        assert ours(text).input_ids == [trained.bos_id(), *ids]


@pytest.mark.parametrize("prefix", [False, True])
def test_pieces_are_those_of_transformers(prefix, tmp_path):
    ours = imported(tmp_path, pieces(prefix=prefix), "gemma3" if not prefix else "llama")
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file="tiny.gguf")
    texts = ["def add(numbers):\n    return sum(numbers)", "The quick 1234 été 你好 🙂", "a  b   c"]
    for text in texts:
        ids = ours(text, add_special_tokens=False).input_ids
        assert ids == theirs(text, add_special_tokens=False).input_ids, text


def test_special_tokens_are_whole_and_texts_begin_and_end_as_stated(tmp_path):
    vocabulary = {
        **byte_level("llama-bpe"),
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": True,
        "tokenizer.ggml.eot_token_id": 0,
    }
    tokenizer = imported(tmp_path, vocabulary)
    (inner,) = tokenizer("a", add_special_tokens=False).input_ids
    assert tokenizer("a").input_ids == [1, inner, 2]
    assert tokenizer("a", "a").input_ids == [1, inner, 2, 1, inner, 2]
    ids = tokenizer("<|im_start|>a<|im_end|><think>", add_special_tokens=False).input_ids
    assert ids == [1, inner, 2, vocabulary["tokenizer.ggml.tokens"].index("<think>")]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a<think>"
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    policy = load_policy(str(tmp_path / "imported"))
    assert policy.end_ids == (0, 2)
    generation = json.loads((tmp_path / "imported/generation_config.json").read_text())
    assert generation["eos_token_id"] == [2, 0]


def test_a_file_of_llama_3_begins_texts_with_bos_unless_it_says_otherwise(tmp_path):
    vocabulary = byte_level("llama-bpe")
    del vocabulary["tokenizer.ggml.add_bos_token"]
    assert imported(tmp_path, vocabulary)("a").input_ids[0] == 1


def _changed(vocabulary, **changes):
    for key, value in changes.items():
        name = f"tokenizer.ggml.{key}"
        if value is None:
            del vocabulary[name]
        else:
            vocabulary[name] = value(vocabulary[name]) if callable(value) else value
    return vocabulary


def _without_normal_types(kinds):
    return [*kinds[:-1], 9]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"model": "bert"},
            "tokenizer.ggml.model: 'bert' is not supported; supported are gpt2, llama",
        ),
        ({"model": None}, "tokenizer.ggml.model: is missing"),
        ({"pre": "tekken"}, "tokenizer.ggml.pre: 'tekken' is not supported; supported are default"),
        ({"tokens": None}, "tokenizer.ggml.tokens: is missing"),
        ({"tokens": lambda t: [*t[:-1], t[0]]}, "tokenizer.ggml.tokens: token '<|endoftext|>' is"),
        ({"tokens": lambda t: [*t[:-1], "x" * 5000]}, "tokens: token 'x+.* has more than 4,000"),
        ({"tokens": lambda t: t[:-1]}, "token_type: 384 types of 383 tokens"),
        ({"token_type": _without_normal_types}, "token_type: 9 is no type"),
        ({"token_type": lambda t: [float(x) for x in t]}, "token_type: .* is no array of numbers"),
        ({"merges": None}, "tokenizer.ggml.merges: is missing"),
        ({"merges": lambda m: ["a"]}, "tokenizer.ggml.merges: 'a' does not join"),
        ({"merges": lambda m: ["a zzzz"]}, "tokenizer.ggml.merges: 'a zzzz' does not join"),
        ({"eos_token_id": None}, "tokenizer.ggml.eos_token_id: is missing"),
        ({"eos_token_id": 400}, "eos_token_id: 400 is no whole number from 0 to 383"),
        ({"bos_token_id": "1"}, "bos_token_id: '1' is no whole number"),
        ({"add_bos_token": 1}, "add_bos_token: 1 is no truth value"),
    ],
)
def test_a_damaged_vocabulary_is_refused_by_name(changes, reason, tmp_path):
    with pytest.raises(ModelError, match=reason):
        imported(tmp_path, _changed(byte_level(), **changes))
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scores": None}, "tokenizer.ggml.scores: is missing"),
        ({"scores": lambda s: s[:-1]}, "scores: 419 scores of 420 tokens"),
        ({"scores": lambda s: [float("nan"), *s[1:]]}, "scores: nan is no finite number"),
        ({"tokens": lambda t: [*t[:-1], "x" * 300]}, "piece 'x+.* has more than 256 characters"),
    ],
)
def test_damaged_pieces_are_refused_by_name(changes, reason, tmp_path):
    with pytest.raises(ModelError, match=reason):
        imported(tmp_path, _changed(pieces(), **changes))
