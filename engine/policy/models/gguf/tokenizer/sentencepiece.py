"""SentencePiece BPE (`tokenizer.ggml.model` = llama) as a tokenizer of the library `tokenizers`.

A file has pieces with scores and no merges: the pair with the best score of its union is joined
first. As merges these are all cuts of a piece into two others, best scores first, equal ones by id.
User-defined tokens take no part: they are matched whole before anything is joined.
"""

from __future__ import annotations

import math
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers

from engine.policy.models.gguf.errors import shown
from engine.policy.models.gguf.metadata import Metadata
from engine.policy.models.gguf.tokenizer.vocabulary import TOKENS, Kind, Vocabulary

SCORES = "tokenizer.ggml.scores"
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
MOST_PIECE_CHARACTERS = 256
MOST_MERGES = 8_000_000


def sentencepiece(metadata: Metadata, vocabulary: Vocabulary) -> tuple[Tokenizer, bool]:
    """Returns the tokenizer without its special tokens, and whether texts begin with BOS.

    Raises:
        ModelError: scores are missing or not finite, or a piece is too long.
    """
    ids = {token: index for index, token in enumerate(vocabulary.tokens)}
    unknown = None if vocabulary.unknown is None else vocabulary.tokens[vocabulary.unknown]
    tokenizer = Tokenizer(
        models.BPE(
            vocab=ids,
            merges=_merges(metadata, vocabulary, ids),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces = normalizers.Replace(" ", SPACE)
    decoding: list[Any] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if metadata.flag("tokenizer.ggml.add_space_prefix", True):
        tokenizer.normalizer = normalizers.Sequence(  # type: ignore[assignment]
            [normalizers.Prepend(SPACE), spaces]
        )
        decoding.append(decoders.Strip(" ", 1, 0))
    else:
        tokenizer.normalizer = spaces  # type: ignore[assignment]
    tokenizer.decoder = decoders.Sequence(decoding)  # type: ignore[assignment]
    return tokenizer, metadata.flag("tokenizer.ggml.add_bos_token", True)


def _merges(
    metadata: Metadata, vocabulary: Vocabulary, ids: dict[str, int]
) -> list[tuple[str, str]]:
    scores = metadata.numbers(SCORES, "f").tolist()
    if len(scores) != len(vocabulary.tokens):
        fault = f"{len(scores):,} scores of {len(vocabulary.tokens):,} tokens"
        raise metadata.wrong(SCORES, fault)
    if bad := next((one for one in scores if not math.isfinite(one)), None):
        raise metadata.wrong(SCORES, f"{bad} is no finite number")
    pieces = dict(vocabulary.of(Kind.NORMAL))
    joinable = {text: index for index, text in pieces.items()}
    merges: list[tuple[float, int, str, str]] = []
    for index, text in pieces.items():
        if len(text) > MOST_PIECE_CHARACTERS:
            fault = f"piece {shown(text)} has more than {MOST_PIECE_CHARACTERS} characters"
            raise metadata.wrong(TOKENS, fault)
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in joinable and right in joinable:
                merges.append((-scores[index], index, left, right))
        if len(merges) > MOST_MERGES:
            raise metadata.wrong(TOKENS, f"its pieces make more than {MOST_MERGES:,} merges")
    merges.sort(key=lambda one: (one[0], one[1], -len(one[2])))
    return [(left, right) for _, _, left, right in merges]
