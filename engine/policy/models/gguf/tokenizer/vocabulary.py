"""Vocabulary of a GGUF file: tokens with their types, and the special ones among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from engine.policy.models.gguf.errors import shown
from engine.policy.models.gguf.metadata import Metadata

TOKENS, TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
MOST_TOKENS = 1_000_000
MOST_TOKEN_CHARACTERS = 4000


class Kind(IntEnum):
    """Type of a token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All tokens of a file."""

    tokens: list[str]
    """By id."""
    kinds: list[Kind]
    """By id."""
    bos: int | None
    eos: int
    pad: int | None
    unknown: int | None
    ends: tuple[int, ...]
    """Ids that end an answer, `eos` first."""

    def of(self, kind: Kind) -> Iterator[tuple[int, str]]:
        """Yields ids and texts of the tokens of a type."""
        for index, one in enumerate(self.kinds):
            if one is kind:
                yield index, self.tokens[index]


_ENDS = frozenset({
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>",
    "<|end_of_text|>", "<EOT>", "<|end_of_turn|>", "</s>",
})  # fmt: skip
"""Control tokens that llama.cpp takes for the end of an answer, by their text."""


def read_vocabulary(metadata: Metadata) -> Vocabulary:
    """Returns the vocabulary of a file.

    Raises:
        ModelError: a token is given twice, a type is unknown, or an id is outside of the tokens.
    """
    tokens = metadata.texts(TOKENS)
    if not 0 < len(tokens) <= MOST_TOKENS:
        raise metadata.wrong(TOKENS, f"{len(tokens):,} tokens, 1 to {MOST_TOKENS:,} are read")
    _refuse_tokens(metadata, tokens)
    kinds = _read_kinds(metadata, len(tokens))
    bos, eos, eot, eom, pad, unknown = (
        metadata.optional_integer(f"tokenizer.ggml.{name}_token_id", len(tokens) - 1)
        for name in ("bos", "eos", "eot", "eom", "padding", "unknown")
    )
    if eos is None:
        fault = "is missing; answers would never end"
        raise metadata.wrong("tokenizer.ggml.eos_token_id", fault)
    by_text = (i for i, kind in enumerate(kinds) if kind is Kind.CONTROL and tokens[i] in _ENDS)
    ends = dict.fromkeys([eos, *(one for one in (eot, eom) if one is not None), *by_text])
    return Vocabulary(tokens, kinds, bos, eos, pad, unknown, tuple(ends))


def _refuse_tokens(metadata: Metadata, tokens: list[str]) -> None:
    seen: set[str] = set()
    for token in tokens:
        if token in seen:
            raise metadata.wrong(TOKENS, f"token {shown(token)} is given twice")
        if len(token) > MOST_TOKEN_CHARACTERS:
            fault = f"token {shown(token)} has more than {MOST_TOKEN_CHARACTERS:,} characters"
            raise metadata.wrong(TOKENS, fault)
        seen.add(token)


def _read_kinds(metadata: Metadata, count: int) -> list[Kind]:
    if TYPES not in metadata:
        return [Kind.NORMAL] * count
    numbers = metadata.numbers(TYPES, "iu").tolist()
    if len(numbers) != count:
        raise metadata.wrong(TYPES, f"{len(numbers):,} types of {count:,} tokens")
    known = {int(kind): kind for kind in Kind}
    unknown = next((one for one in numbers if one not in known), None)
    if unknown is not None:
        raise metadata.wrong(TYPES, f"{unknown} is no type of a token")
    return [known[one] for one in numbers]
