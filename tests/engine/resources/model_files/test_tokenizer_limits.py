"""Tests that a tokenizer.json whose parts multiply a text is refused, and a usual one is not."""

import base64
import json
import struct

import pytest

from engine.policy.starters import starter_directory
from engine.resources.model_files.tokenizer_limits import TokenizerTooLarge, refuse_growth

BLANK = "\u2581"


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def sequence(name, *parts):
    return {"type": "Sequence", name: list(parts)}


def normalizers(*parts):
    return {"normalizer": sequence("normalizers", *parts)}


def pre_tokenizers(*parts):
    return {"pre_tokenizer": sequence("pretokenizers", *parts)}


def charsmap(*texts):
    """A map of characters with an empty trie and these replacements."""
    data = struct.pack("<I", 0) + b"".join(text.encode() + b"\0" for text in texts)
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def template(*pieces, special_tokens=None):
    return {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": list(pieces),
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": special_tokens or {},
        }
    }


A = {"Sequence": {"id": "A", "type_id": 0}}
SIGN = {"SpecialToken": {"id": "<s>", "type_id": 0}}
NFKC, BYTES = {"type": "NFKC"}, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
METASPACE = {"type": "Metaspace", "replacement": BLANK, "prepend_scheme": "always", "split": True}
USUAL = {
    "Llama 2": normalizers({"type": "Prepend", "prepend": BLANK}, replace(" ", BLANK))
    | {
        "decoder": sequence(
            "decoders", replace(BLANK, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        )
    },
    "Llama 3": pre_tokenizers(
        {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {
            "Regex": r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+"}},
        BYTES,
    ) | {
        "post_processor": sequence(
            "processors",
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False},
            template(SIGN, A, special_tokens={"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}})[
                "post_processor"],
        )
    },
    "Qwen": {"normalizer": {"type": "NFC"}} | pre_tokenizers(
        {"type": "Split", "pattern": {"Regex": r"\p{N}"}, "behavior": "Isolated"}, BYTES),
    "Gemma": {"normalizer": replace(" ", BLANK),
              "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Merged"}},
    "GPT-2": {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True},
              "padding": {"strategy": "BatchLongest", "pad_to_multiple_of": 8},
              "truncation": {"max_length": 512, "stride": 128, "strategy": "LongestFirst"}},
    "DeepSeek": normalizers() | pre_tokenizers({"type": "Digits"}, BYTES),
    "BERT": {"normalizer": {"type": "BertNormalizer"},
             "pre_tokenizer": {"type": "BertPreTokenizer"},
             "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}},
    "T5": {"normalizer": charsmap("a", "\u0635" * 18),
           **pre_tokenizers({"type": "WhitespaceSplit"}, METASPACE), "decoder": METASPACE},
    "XGLM": normalizers(charsmap("\u0635" * 18), replace(" {2,}", " ", "Regex")),
    "CLIP": normalizers({"type": "NFC"}, replace(r"\s+", " ", "Regex"), {"type": "Lowercase"}),
    "NFKC and bytes": normalizers({"type": "Nmt"}, NFKC, {"type": "Lowercase"}, NFKC) | {
        "pre_tokenizer": {"type": "ByteLevel"}},
}  # fmt: skip
GROWING = {
    "three Replace normalizers": (
        normalizers(*[replace(a, b * 1000) for a, b in ("ab", "bc", "cd")]), "normalizer makes up"),
    "one Replace": ({"normalizer": replace("a", "b" * 1000)}, "normalizer makes up to 1,000"),
    "many of little growth": (
        normalizers(*[replace(a, b + b) for a, b in zip("abcdefgh", "bcdefghi", strict=True)]),
        "makes up to 256"),
    "sequences within sequences": (
        normalizers(sequence("normalizers", *[replace("a", "aaa")] * 3),
                    sequence("normalizers", *[replace("a", "aaa")] * 3)), "makes up to 243"),
    "an expression that matches nothing": (
        normalizers(*[replace("(?=a)", "a", "Regex")] * 8), "makes up to 243"),
    "an empty text": (normalizers(*[replace("", "a")] * 8), "makes up to 243"),
    "expressions of another syntax": (
        normalizers(*[replace(r"a\K", "a", "Regex")] * 8), "makes up to 243"),
    "a long Prepend": ({"normalizer": {"type": "Prepend", "prepend": "a" * 500}}, "up to 501"),
    "signs that a normal form takes apart": (
        normalizers(NFKC, replace(" ", "\ufdfa"), NFKC), "makes up to 324"),
    "a map of characters": ({"normalizer": charsmap("a", "b" * 999)}, "makes up to 999"),
    "maps of characters": (normalizers(charsmap("ab" * 6), charsmap("cd" * 6)), "makes up to 144"),
    "a broken map": (
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "*"}}, "no map of char"),
    "bytes of bytes": (pre_tokenizers(*[BYTES] * 30), "pre_tokenizer makes up to 256"),
    "prefixes of pieces": (
        pre_tokenizers(*[{"type": "FixedLength", "length": 1}, METASPACE] * 30), "makes up to 256"),
    "both together": (
        normalizers(*[replace("a", "aa")] * 6) | pre_tokenizers(*[METASPACE] * 6),
        "normalizer and pre_tokenizer makes up to 4,096"),
    "a decoder": (
        {"decoder": sequence("decoders", *[replace("a", "a" * 1000)] * 3)}, "decoder makes up to"),
    "a decoder's prefix": (
        {"decoder": {"type": "WordPiece", "prefix": "a" * 9999, "cleanup": True}}, "prefix of W"),
    "too many parts": (normalizers(*[{"type": "NFC"}] * 65), "more than 64 parts"),
    "a part of no known type": ({"normalizer": {"type": "Python"}}, "'Python' is not known"),
    "a part without a type": ({"pre_tokenizer": {"pattern": {"String": "a"}}}, "is not known"),
    "a type of another kind": ({"decoder": {"type": "NFKC"}}, "'NFKC' is not known"),
    "no object": (normalizers("NFC"), "is not known"),
    "a content of another type": ({"normalizer": replace("a", 10**9)}, "content of Replace must"),
    "no pattern": ({"normalizer": {"type": "Replace", "content": "a"}}, "String or a Regex"),
    "a long expression": ({"normalizer": replace("a" * 2000, "", "Regex")}, "Regex of None must"),
    "a long repetition": ({"normalizer": replace("a{99999}", "", "Regex")}, "repeats more than"),
    "a text twice": (template(A, A), "post_processor.single writes a text more than once"),
    "many special tokens": (template(*[SIGN] * 100), "post_processor adds 100 ids"),
    "a special token of many ids": (
        template(SIGN, special_tokens={"<s>": {"id": "<s>", "ids": [1] * 100, "tokens": ["a"]}}),
        "post_processor adds 100 ids"),
    "a template of another form": (template("A"), "not of the known form"),
    "a long padding": ({"padding": {"strategy": {"Fixed": 10**9}}}, "padding.strategy must be"),
    "a padding to multiples": (
        {"padding": {"strategy": "BatchLongest", "pad_to_multiple_of": 10**9}}, "padding.multiple"),
    "windows without end": ({"truncation": {"max_length": 512, "stride": 511}}, "truncation.str"),
    "a long token": ({"model": {"type": "BPE", "vocab": {"a" * 2000: 0}}}, "a token of 2,000"),
    "a long piece": ({"model": {"type": "Unigram", "vocab": [["a" * 2000, 0.0]]}}, "a token of 2,"),
    "a long added token": ({"added_tokens": [{"id": 0, "content": "a" * 2000}]}, "added_tokens h"),
    "a long prefix of pieces": (
        {"model": {"type": "BPE", "vocab": {}, "continuing_subword_prefix": "a" * 9999}},
        "model: continuing_subword_prefix"),
    "words without end": (
        {"model": {"type": "WordPiece", "vocab": {}, "max_input_chars_per_word": 10**9}},
        "max_input_chars_per_word must"),
}  # fmt: skip


def tokenizer(changes):
    oak = json.loads((starter_directory("oak") / "tokenizer.json").read_text())
    return oak | changes


@pytest.mark.parametrize("name", USUAL)
def test_the_parts_of_published_tokenizers_are_accepted(name):
    refuse_growth(tokenizer(USUAL[name]))


@pytest.mark.parametrize("name", GROWING)
def test_what_multiplies_a_text_is_refused_by_its_part(name):
    changes, why = GROWING[name]
    with pytest.raises(TokenizerTooLarge) as refused:
        refuse_growth(tokenizer(changes))
    assert why in str(refused.value) and str(refused.value).endswith("; " + refused.value.remedy)
