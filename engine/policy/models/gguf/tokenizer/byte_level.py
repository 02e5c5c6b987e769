"""Byte-level BPE (`tokenizer.ggml.model` = gpt2) as a tokenizer of the library `tokenizers`."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models

from engine.policy.models.gguf.errors import shown
from engine.policy.models.gguf.metadata import Metadata
from engine.policy.models.gguf.tokenizer.pre_tokenizers import splitting_of
from engine.policy.models.gguf.tokenizer.vocabulary import Vocabulary

MERGES = "tokenizer.ggml.merges"


def byte_level(metadata: Metadata, vocabulary: Vocabulary) -> tuple[Tokenizer, bool]:
    """Returns the tokenizer without its special tokens, and whether texts begin with BOS.

    Raises:
        ModelError: a merge is malformed or not of the vocabulary, or the pre-tokenizer is not
            supported.
    """
    splitting = splitting_of(metadata)
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    model = models.BPE(
        vocab=ids, merges=_read_merges(metadata, ids), ignore_merges=splitting.ignores_merges
    )
    tokenizer = Tokenizer(model)
    if splitting.normalizer is not None:
        tokenizer.normalizer = splitting.normalizer()  # type: ignore[assignment]
    prefix = metadata.flag("tokenizer.ggml.add_space_prefix", False)
    tokenizer.pre_tokenizer = splitting.pre_tokenizer(prefix)  # type: ignore[assignment]
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    return tokenizer, metadata.flag("tokenizer.ggml.add_bos_token", splitting.begins)


def _read_merges(metadata: Metadata, ids: dict[str, int]) -> list[tuple[str, str]]:
    merges = []
    for text in metadata.texts(MERGES):
        left, _, right = text.partition(" ")
        if left not in ids or right not in ids or left + right not in ids:
            fault = f"{shown(text)} does not join two tokens to a third of the vocabulary"
            raise metadata.wrong(MERGES, fault)
        merges.append((left, right))
    return merges
