r"""Pre-tokenizers of byte-level vocabularies, by `tokenizer.ggml.pre`.

A file only names its pre-tokenizer. What the names mean is in llama.cpp (`llama_vocab`, regular
expressions of `llm_tokenizer_bpe`) and, for the models that they were made for, in their
tokenizer.json: where both exist, this is the latter, with which the model was trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer

from engine.policy.models.gguf.metadata import Metadata

KEY = "tokenizer.ggml.pre"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


@dataclass(frozen=True, slots=True)
class Splitting:
    """How a text is cut before its pieces are encoded."""

    pre_tokenizer: Callable[[bool], PreTokenizer]
    """Of whether a space is put before the text."""
    normalizer: Callable[[], Normalizer] | None = None
    ignores_merges: bool = False
    """Whether a piece that is a token is that token, whatever the merges make of it."""
    begins: bool = False
    """Whether a text begins with the BOS token if the file does not say."""


def _by(*patterns: str) -> Callable[[bool], PreTokenizer]:
    def make(prefix: bool) -> PreTokenizer:
        splits = [pre_tokenizers.Split(Regex(one), "isolated") for one in patterns]
        last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)
        return pre_tokenizers.Sequence([*splits, last])

    return make


def _gpt2(prefix: bool) -> PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True)


def _smollm(prefix: bool) -> PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True),
        ]
    )


_LLAMA_BPE = Splitting(_by(_LLAMA3), ignores_merges=True, begins=True)
_QWEN = Splitting(_by(_QWEN2), normalizers.NFC)
SPLITTINGS = {
    "default": Splitting(_by(r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")),
    "deepseek-r1-qwen": _QWEN,
    "gpt-2": Splitting(_gpt2),
    "llama-bpe": _LLAMA_BPE,
    "llama-v3": _LLAMA_BPE,
    "llama3": _LLAMA_BPE,
    "qwen2": _QWEN,
    "smollm": Splitting(_smollm),
}


def splitting_of(metadata: Metadata) -> Splitting:
    """Returns the splitting that a file names; `default` if it names none, as llama.cpp does.

    Raises:
        ModelError: it names one that is not supported.
    """
    name = metadata.text(KEY, "default")
    if name not in SPLITTINGS:
        fault = f"{name[:100]!r} is not supported; supported are {', '.join(SPLITTINGS)}"
        raise metadata.wrong(KEY, fault, "give a model with one of these")
    return SPLITTINGS[name]
