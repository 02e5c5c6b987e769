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
_NEEDED = ("eos_token", "pad_token", "bos_token")
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


def check_numbers(tokenizer: Mapping[str, Any], vocabulary: int | None) -> None:
    """Checks that each added token of tokenizer.json keeps its id when the file is read: the
    library takes that of its text in the vocabulary, or else the next one that is free, whatever
    the file says, and the model would read another row. `tokens_beyond` a vocabulary of so many
    rows are left out.

    Raises:
        SettingsFault: names the first token with another id.
    """
    model = tokenizer.get("model")
    held = model.get("vocab") if isinstance(model, Mapping) else None
    if not isinstance(held, Mapping):
        held = {text: number for number, text in enumerate(_vocabulary_texts(held))}
    beyond = tokens_beyond(tokenizer, vocabulary) if vocabulary is not None else {}
    numbers: dict[str, int] = {}
    free = len(held)
    for one in _with_ids(tokenizer.get("added_tokens")):
        text, number = one.get("content"), one["id"]
        if not isinstance(text, str) or not text or text in beyond:
            continue
        read = numbers.setdefault(text, held.get(text, free))
        free = max(free, read + 1)
        if read != number:
            what = f"added_tokens: {text[:60]!r} has the id {number:,}, but is read as {read:,}"
            raise SettingsFault(what, "give the tokenizer as the library saves it")


def check_end_ids(settings: Mapping[str, Any], vocabulary: int | None) -> None:
    """Checks that a vocabulary of so many rows has one of the end tokens that config.json or
    generation_config.json names by their ids. Some files have -1 for none.

    Raises:
        SettingsFault: every id that is given is beyond the vocabulary.
    """
    given = settings.get("eos_token_id")
    ids = [one for one in (given if isinstance(given, list) else [given]) if type(one) is int]
    if vocabulary is None or not ids or min(ids) < vocabulary:
        return
    shown = ", ".join(f"{one:,}" for one in ids[:3]) + (", ..." if len(ids) > 3 else "")
    what = f"eos_token_id = {shown} is beyond config.json's vocabulary of {vocabulary:,}"
    raise SettingsFault(what, "give the id of the token that ends an answer")


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


def check_named_tokens(
    tokenizer: Mapping[str, Any], settings: Mapping[str, Any], vocabulary: int | None
) -> None:
    """Checks that the settings name an end token, and that a vocabulary of so many rows has one for
    every token that they name: those that tokenizer.json lacks are added after its last. Of
    `tokens_beyond`, which are left out, none may begin, end or pad an answer.

    Raises:
        SettingsFault: names the first token without a row.
    """
    if not _text_of(settings.get("eos_token")):
        what = "names no eos_token; answers would never end"
        raise SettingsFault(what, "give the token that ends an answer")
    if vocabulary is None:
        return
    beyond = tokens_beyond(tokenizer, vocabulary)
    for key in _NEEDED:
        if (number := beyond.get(_text_of(settings.get(key)) or "")) is not None:
            what = f"{key} has the id {number:,}, and config.json a vocabulary of {vocabulary:,}"
            raise SettingsFault(what, "give the tokenizer of this model")
    added, model = tokenizer.get("added_tokens"), tokenizer.get("model")
    held = set(_vocabulary_texts(model.get("vocab") if isinstance(model, Mapping) else None))
    first = max([len(held), *(one["id"] + 1 for one in _with_ids(added) if one["id"] < vocabulary)])
    held |= set(_texts(added))
    for key, text in _named(settings):
        if text in held:
            continue
        if first >= vocabulary:
            what = f"{key}: {text[:60]!r} is no token of tokenizer.json"
            remedy = f"give one of its tokens: the vocabulary of {vocabulary:,} has no row for more"
            raise SettingsFault(what, remedy)
        held.add(text)
        first += 1


def _with_ids(added: Any) -> Iterator[Mapping[str, Any]]:
    for one in added if isinstance(added, list) else []:
        if isinstance(one, Mapping) and type(one.get("id")) is int:
            yield one


def _named(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the setting and the text of every token."""
    for key, value in settings.items():
        if key in _TOKEN_LISTS:
            yield from ((key, text) for text in _texts(value) if text)
        elif key.endswith("_token") and (text := _text_of(value)):
            yield key, text


def _text_of(value: Any) -> str | None:
    text = value.get("content") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) else None


def _is_token(value: Any) -> bool:
    return value is None or _text_of(value) is not None


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
