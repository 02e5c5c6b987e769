"""The text of single tokens, for people who look at an answer token by token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any


class TokenTexts:
    """Texts of token ids under one tokenizer, special tokens as they are written.

    A token is read after the one before it, since some tokenizers drop the space in front of a
    text. A character that is split over tokens shows as the replacement character.
    """

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self._after = lru_cache(maxsize=1 << 16)(self._read_after)

    def whole(self, ids: Sequence[int]) -> str:
        """The text of all of them."""
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def each(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text that each of them adds."""
        before = [None, *ids[:-1]] if ids else []
        return tuple(self._after(*pair) for pair in zip(before, ids, strict=True))

    def _read_after(self, before: int | None, token: int) -> str:
        if before is None:
            return self.whole([token])
        return self.whole([before, token])[len(self.whole([before])) :]
