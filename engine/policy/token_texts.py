"""Texts of single tokens, for the display of an answer token by token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any


class TokenTexts:
    """Texts of token ids under one tokenizer, including special tokens.

    A token is decoded after the one before it, since some tokenizers drop the space in front of a
    text. A character that is split over tokens is shown as the replacement character.
    """

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self._after = lru_cache(maxsize=1 << 16)(self._read_after)
        self._whole = lru_cache(maxsize=256)(self._decode)

    def whole(self, ids: Sequence[int]) -> str:
        """Returns the text of all of them; cached, since siblings have the same prompt."""
        return self._whole(tuple(ids))

    def each(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Returns the text that each of them adds."""
        before = [None, *ids[:-1]] if ids else []
        return tuple(self._after(*pair) for pair in zip(before, ids, strict=True))

    def _read_after(self, before: int | None, token: int) -> str:
        if before is None:
            return self._decode((token,))
        return self._decode((before, token))[len(self._decode((before,))) :]

    def _decode(self, ids: tuple[int, ...]) -> str:
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
