"""Bounds of the tokens that a model brings: their number and the length of each.

Well above what published models have: Gemma adds 6,400 tokens, models of speech up to 66,000; the
longest entries of published vocabularies are runs of some hundred spaces or dots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.config.model_settings import SettingsFault

MAX_ADDED = 100_000
MAX_ADDED_CHARACTERS = 1_000
MAX_BEYOND = 64
"""Added tokens beyond the vocabulary of a model; with more it is another model's tokenizer."""
MAX_VOCABULARY_CHARACTERS = 4_000
_TOKEN_LISTS = ("additional_special_tokens", "extra_special_tokens", "added_tokens_decoder",
                "model_specific_special_tokens")  # fmt: skip


def check_tokens(tokenizer: Mapping[str, Any]) -> None:
    """Checks the tokens of tokenizer.json.

    Raises:
        SettingsFault: there are too many added ones, or one is too long.
    """
    added = tokenizer.get("added_tokens")
    _check_added(list(_texts(added)), "added_tokens")
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    for text in _vocabulary_texts(vocabulary):
        _check_length("model.vocab", text, MAX_VOCABULARY_CHARACTERS)


def tokens_beyond(tokenizer: Mapping[str, Any], vocabulary: int) -> dict[str, int]:
    """Returns the ids, by text, of the added tokens of tokenizer.json that no row of an embedding
    of so many rows stands for; empty if there are none, or more than a model brings by design.

    Text-only Gemma 3 has one, of pictures. Tokens of the vocabulary itself are no such: then the
    tokenizer is another model's.
    """
    added, model = tokenizer.get("added_tokens"), tokenizer.get("model")
    held = model.get("vocab") if isinstance(model, Mapping) else None
    beyond = {
        one["content"]: one["id"]
        for one in (added if isinstance(added, list) else [])
        if isinstance(one, Mapping)
        and isinstance(one.get("content"), str)
        and type(one.get("id")) is int
        and one["id"] >= vocabulary
    }
    in_vocabulary = held.keys() if isinstance(held, Mapping) else set(_vocabulary_texts(held))
    few = len(beyond) <= MAX_BEYOND
    return beyond if few and not in_vocabulary & beyond.keys() else {}


def beyond_text(beyond: Mapping[str, int], vocabulary: int) -> str:
    """Returns a sentence about `tokens_beyond`."""
    names = ", ".join(f"{text[:40]!r} ({number:,})" for text, number in list(beyond.items())[:3])
    more = ", ..." if len(beyond) > 3 else ""
    return (
        f"tokens beyond config.json's vocabulary of {vocabulary:,} are left out: {names}{more}; "
        "their texts are read as any other text"
    )


def check_special_tokens(settings: Mapping[str, Any]) -> None:
    """Checks the tokens of tokenizer_config.json or special_tokens_map.json; raises as
    `check_tokens`."""
    for key, value in settings.items():
        if key.endswith("_token") and not key.startswith("add_") and not _is_token(value):
            what = f"{key} = {repr(value)[:60]} is no token"
            raise SettingsFault(what, "give its text, or an object with its content")
        if key in _TOKEN_LISTS or key.endswith("_token"):
            _check_added(list(_texts(value)), key)


def _is_token(value: Any) -> bool:
    text = value.get("content") if isinstance(value, Mapping) else value
    return value is None or isinstance(text, str)


def _check_added(texts: list[str], key: str) -> None:
    if len(texts) > MAX_ADDED:
        what = f"{key} holds {len(texts):,} tokens, {MAX_ADDED:,} at most are accepted"
        raise SettingsFault(what, "put them into the vocabulary")
    for text in texts:
        _check_length(key, text, MAX_ADDED_CHARACTERS)


def _check_length(key: str, text: str, most: int) -> None:
    if len(text) > most:
        what = f"{key}: the token {text[:40]!r}... has {len(text):,} characters, {most:,} at most"
        raise SettingsFault(f"{what} are accepted", "leave it out")


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts of tokens, which are texts themselves or objects with `content`, in a list
    or by name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and "content" in value:
        yield str(value["content"])
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _vocabulary_texts(vocabulary: Any) -> Iterator[str]:
    if isinstance(vocabulary, Mapping):
        yield from vocabulary
    elif isinstance(vocabulary, list):  # Unigram: pairs of a text and its score
        yield from (row[0] for row in vocabulary if isinstance(row, list) and row)
