"""The tokenizer of a model's directory, and the only place where one is loaded.

Invariant: of the directory, `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`
and `chat_template.jinja` are opened, and no other file; the first is read by the Rust library,
which opens none that it names. `AutoTokenizer` would choose a class by the settings of a stranger
and hand it all the others, of which `vocab` and its like are paths of files that become tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

from engine.config.model_settings.tokens import tokens_beyond
from engine.policy.models.settings import ModelError, first_line, tokenizer_settings

_NAMED = frozenset(PreTrainedTokenizerFast.SPECIAL_TOKENS_ATTRIBUTES)
_PLAIN = ("clean_up_tokenization_spaces", "model_max_length", "padding_side", "truncation_side",
          "split_special_tokens")  # fmt: skip
_FLAGS = ("lstrip", "rstrip", "normalized", "single_word", "special")


def load_tokenizer(directory: Path, vocabulary: int | None = None) -> PreTrainedTokenizerFast:
    """Returns the tokenizer of `tokenizer.json` with the special tokens, chat template and length
    of the settings next to it. With `vocabulary`, the rows of the model's embedding, it is without
    added tokens whose ids are beyond them: their texts are read as any other text.

    Raises:
        ModelError: a file is missing or damaged, or a setting is refused; names it.
    """
    file = directory / "tokenizer.json"
    settings = tokenizer_settings(directory)
    try:
        text = file.read_text("utf-8")
        if vocabulary is not None:
            text, settings = _within(vocabulary, text, settings)
        backend = Tokenizer.from_str(text)
        return PreTrainedTokenizerFast(
            tokenizer_object=backend,
            chat_template=_template(directory, settings),
            **_special(settings, backend),
            **{key: settings[key] for key in _PLAIN if key in settings},
        )
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{file}: {first_line(error)}") from error


def _within(vocabulary: int, text: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns tokenizer.json and the settings without the added tokens beyond the vocabulary."""
    tokenizer = json.loads(text)
    beyond = tokens_beyond(tokenizer, vocabulary)
    if not beyond:
        return text, settings
    tokenizer["added_tokens"] = [
        one for one in tokenizer["added_tokens"] if one["content"] not in beyond
    ]
    return json.dumps(tokenizer), {
        key: _without(value, beyond)
        for key, value in settings.items()
        if not (key.endswith("_token") and _text_of(value) in beyond)
    }


def _without(value: Any, texts: Mapping[str, int]) -> Any:
    """Returns a list or an object of tokens without those of `texts`."""
    if isinstance(value, list):
        return [one for one in value if _text_of(one) not in texts]
    if isinstance(value, Mapping) and "content" not in value:
        return {key: one for key, one in value.items() if _text_of(one) not in texts}
    return value


def _text_of(token: Any) -> str | None:
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else None


def _template(directory: Path, settings: Mapping[str, Any]) -> Any:
    file = directory / "chat_template.jinja"
    return file.read_text("utf-8") if file.is_file() else settings.get("chat_template")


def _special(settings: Mapping[str, Any], backend: Tokenizer) -> dict[str, Any]:
    """Returns the arguments that say which tokens are added and special, as transformers' own
    loader makes them of these settings."""
    listed = settings.get("added_tokens_decoder")
    added = (
        backend.get_added_tokens_decoder()
        if listed is None
        else {int(index): _token(one, special=False) for index, one in listed.items()}
    )
    by_text: dict[str, str | AddedToken] = {str(one): one for one in added.values()}
    more = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or ()
    own = dict(settings.get("model_specific_special_tokens") or {})
    own |= {
        key: value
        for key, value in settings.items()
        if key.endswith("_token") and key not in _NAMED and isinstance(value, str)
    }
    own |= more if isinstance(more, Mapping) else {}
    arguments = {
        **{k: _known(settings[k], by_text) for k in _NAMED if settings.get(k) is not None},
        "added_tokens_decoder": added,
        "extra_special_tokens": [] if isinstance(more, Mapping) else [_token(one) for one in more],
        "model_specific_special_tokens": {key: _token(value) for key, value in own.items()},
    }
    return {key: value for key, value in arguments.items() if value}  # all of it is saved again


def _known(value: Any, by_text: Mapping[str, str | AddedToken]) -> str | AddedToken:
    token = _token(value)
    return by_text.get(str(token), token)


def _token(value: Any, *, special: bool = True) -> str | AddedToken:
    """Returns a token of its text, or of an object with `content` and flags, of which `special` is
    the default."""
    if isinstance(value, str):
        return value
    flags = {name: value[name] for name in _FLAGS if name in value}
    return AddedToken(value["content"], **{"special": special} | flags)
