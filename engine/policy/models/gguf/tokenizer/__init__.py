"""Tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Tokenizer, processors

from engine.policy.models.gguf.metadata import Metadata
from engine.policy.models.gguf.tokenizer.byte_level import byte_level
from engine.policy.models.gguf.tokenizer.sentencepiece import sentencepiece
from engine.policy.models.gguf.tokenizer.vocabulary import Kind, Vocabulary, read_vocabulary

KINDS: dict[str, Callable[[Metadata, Vocabulary], tuple[Tokenizer, bool]]] = {
    "gpt2": byte_level,
    "llama": sentencepiece,
}
"""By `tokenizer.ggml.model`."""


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """What is written of a tokenizer."""

    vocabulary: Vocabulary
    tokenizer: Tokenizer
    config: dict[str, Any]
    """Of tokenizer_config.json."""


def read_tokenizer(metadata: Metadata, context: int) -> TokenizerFiles:
    """Returns the tokenizer of a file; `context` is the longest text of its model, in tokens.

    Raises:
        ModelError: its kind is not supported, or its vocabulary is damaged.
    """
    kind = metadata.text("tokenizer.ggml.model")
    if kind not in KINDS:
        fault = f"{kind[:100]!r} is not supported; supported are {', '.join(KINDS)}"
        raise metadata.wrong("tokenizer.ggml.model", fault, "give a model with one of these")
    vocabulary = read_vocabulary(metadata)
    tokenizer, begins = KINDS[kind](metadata, vocabulary)
    special = [*vocabulary.of(Kind.UNKNOWN), *vocabulary.of(Kind.CONTROL)]
    tokenizer.add_special_tokens([_added(text, special=True) for _, text in special])
    tokenizer.add_tokens(
        [_added(text, special=False) for _, text in vocabulary.of(Kind.USER_DEFINED)]
    )
    _add_ends(metadata, tokenizer, vocabulary, begins)
    return TokenizerFiles(vocabulary, tokenizer, _config(vocabulary, context))


def _added(text: str, *, special: bool) -> AddedToken:
    return AddedToken(text, special=special, normalized=False)


def _add_ends(
    metadata: Metadata, tokenizer: Tokenizer, vocabulary: Vocabulary, begins: bool
) -> None:
    """Lets texts begin with BOS and end with EOS, where the file says so."""
    first = vocabulary.bos if begins else None
    last = vocabulary.eos if metadata.flag("tokenizer.ggml.add_eos_token", False) else None
    # Symbols, not the tokens' own texts, which may hold anything.
    named = {"first": first, "last": last}
    special = [
        {"id": name, "ids": [one], "tokens": [vocabulary.tokens[one]]}
        for name, one in named.items()
        if one is not None
    ]
    if not special:
        return
    before = "first:{0} " if first is not None else ""
    after = " last:{0}" if last is not None else ""
    single, second = f"{before}$A:{{0}}{after}".format(0), f"{before}$B:{{0}}{after}".format(1)
    tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single=single, pair=f"{single} {second}", special_tokens=special
    )


def _config(vocabulary: Vocabulary, context: int) -> dict[str, Any]:
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
    }
    for name, index in (
        ("bos_token", vocabulary.bos),
        ("eos_token", vocabulary.eos),
        ("pad_token", vocabulary.pad),
        ("unk_token", vocabulary.unknown),
    ):
        if index is not None:
            config[name] = vocabulary.tokens[index]
    return config
