"""Checks of the JSON and text files of a model: well-formed, plausible, and without code.

Invariant: the files that a loader reads hold known keys alone, with values that name no code and no
other file or place (`engine.config.model_settings`, by whose lists the engine loads too).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.config import bounded_json, git_lfs
from engine.config.model_settings import (
    FILES,
    SPECIAL_TOKENS,
    TOKENIZER,
    SettingsFault,
    refuse_mark,
    refuse_unknown,
    tokens,
    without_repetition,
)
from engine.config.model_settings.sizes import Shapes, check_sizes
from engine.resources.model_files.templates import has_template
from engine.resources.model_files.tokenizer_limits import TokenizerTooLarge, refuse_growth
from webapp.model_names import TOKENIZER as TOKENIZER_FILE
from webapp.registry.model_files.safetensors import WeightsError

if TYPE_CHECKING:
    from webapp.registry.model_files.layout import ModelFile

MOST_SETTINGS_BYTES = 2_000_000
MOST_TOKENIZER_BYTES = 64_000_000
MOST_TEXT_BYTES = 32_000_000
MOST_VOCABULARY = 4_000_000
ARCHITECTURES = Path(__file__).with_name("architectures.txt")
"""One name per line: what AutoModelForCausalLM of the pinned transformers loads."""
_SAVE_AGAIN = "save the model again with save_pretrained"
_SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
          "intermediate_size", "max_position_embeddings")  # fmt: skip
_TOKENIZERS = {"BPE", "WordPiece", "Unigram", "WordLevel"}


@dataclass(frozen=True, slots=True)
class Config:
    architecture: str
    vocabulary: int | None
    """Rows of the embedding, if the file states them."""
    settings: Mapping[str, Any]
    """The whole file."""


@cache
def architectures() -> frozenset[str]:
    """Returns the architectures that the engine can load."""
    return frozenset(ARCHITECTURES.read_text("utf-8").split())


def check_config(file: ModelFile, shapes: Shapes) -> Config:
    """Checks config.json, whose sizes must be those of the weights. Raises `WeightsError`."""
    config = check_settings(file)
    names = config.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise WeightsError(file.name, "architectures must name one", _SAVE_AGAIN)
    if names[0] not in architectures():
        what = f"architectures = {names[0][:100]!r} is no supported causal language model"
        raise WeightsError(file.name, what, "give one that AutoModelForCausalLM loads")
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        for name in _SIZES:
            value = part.get(name)
            if value is not None and not (type(value) is int and 0 < value < 2**31):
                what = f"{name} = {str(value)[:40]} must be a whole number above 0"
                raise WeightsError(file.name, what, _SAVE_AGAIN)
    nested = inner.get("vocab_size") if isinstance(inner, dict) else None
    vocabulary = config.get("vocab_size") or nested
    with _named(file):
        check_sizes(config, shapes)
        tokens.check_end_ids(config, vocabulary)
    return Config(names[0], vocabulary, config)


def check_further_settings(file: ModelFile, vocabulary: int | None) -> None:
    """Checks generation_config.json, or another file of `SETTINGS`. Raises `WeightsError`."""
    settings = check_settings(file)
    with _named(file):
        tokens.check_end_ids(settings, vocabulary)


def check_tokenizer(
    file: ModelFile, vocabulary: int | None, settings: Mapping[str, Any]
) -> tuple[str, ...]:
    """Checks tokenizer.json, whose ids must be within the embedding, as those of the tokens that
    the settings of tokenizer_config.json name, and returns warnings: a few added tokens at its end
    may be beyond it, which the engine leaves out. Raises `WeightsError`."""
    tokenizer = _object(file, MOST_TOKENIZER_BYTES)
    with _named(file):
        tokens.check_tokens(tokenizer)
    _refuse_growth(file, tokenizer)
    model, added = tokenizer.get("model"), tokenizer.get("added_tokens", [])
    # Older files omit `type`; then the vocabulary determines it.
    kind = model.get("type", "BPE") if isinstance(model, dict) else None
    if kind not in _TOKENIZERS:
        what = f"model.type must be one of {', '.join(sorted(_TOKENIZERS))}"
        raise WeightsError(file.name, what, _SAVE_AGAIN)
    ids = [*_ids(file, model.get("vocab")), *_added_ids(file, added)]
    if not 0 < len(ids) <= MOST_VOCABULARY:
        what = f"{len(ids):,} tokens, 1 to {MOST_VOCABULARY:,} are accepted"
        raise WeightsError(file.name, what, _SAVE_AGAIN)
    try:
        tokens.check_named_tokens(tokenizer, settings, vocabulary)
    except SettingsFault as fault:
        raise WeightsError(TOKENIZER, fault.what, fault.remedy) from None
    if vocabulary is None:
        return ()
    beyond = tokens.tokens_beyond(tokenizer, vocabulary)
    left = set(beyond.values())
    largest = max((one for one in ids if one not in left), default=0)
    if largest >= vocabulary:
        what = f"has a token of id {largest:,}, config.json a vocabulary of {vocabulary:,}"
        raise WeightsError(file.name, what, "give the tokenizer of this model")
    with _named(file):
        tokens.check_numbers(tokenizer, vocabulary)
    return (f"{file.name}: {tokens.beyond_text(beyond, vocabulary)}",) if beyond else ()


def _refuse_growth(file: ModelFile, tokenizer: dict[str, Any]) -> None:
    try:
        refuse_growth(tokenizer)
    except TokenizerTooLarge as error:
        raise WeightsError(file.name, error.what, error.remedy) from None


def _ids(file: ModelFile, vocab: Any) -> Iterator[int]:
    if isinstance(vocab, list):  # Unigram: the index is the id
        yield from range(len(vocab))
        return
    ids = list(vocab.values()) if isinstance(vocab, dict) else [None]
    if any(type(one) is not int or one < 0 for one in ids):
        raise WeightsError(file.name, "model.vocab must give each token an id", _SAVE_AGAIN)
    yield from ids


def _added_ids(file: ModelFile, added: Any) -> Iterator[int]:
    rows = added if isinstance(added, list) else [None]
    for one in rows:
        number = one.get("id") if isinstance(one, dict) else None
        if type(number) is not int or number < 0:
            raise WeightsError(file.name, "each of added_tokens must have an id", _SAVE_AGAIN)
        yield number


def check_tokenizer_config(
    file: ModelFile, special: ModelFile | None, *, has_file: bool
) -> dict[str, Any]:
    """Checks tokenizer_config.json, and returns its settings with those of special_tokens_map.json
    where it lists no tokens, as the engine reads them. `has_file`: there is a chat_template.jinja.
    Raises `WeightsError`."""
    config = check_settings(file)
    if not has_file and not has_template(config):
        remedy = "add the file, or its text to tokenizer_config.json"
        raise WeightsError("chat_template.jinja", "is missing", remedy)
    own = special is not None and "added_tokens_decoder" not in config
    return config | (check_settings(special) if special is not None and own else {})


def check_settings(file: ModelFile) -> dict[str, Any]:
    """Returns the settings of a file of which the engine reads known keys alone. Raises
    `WeightsError`."""
    settings = _object(file, MOST_SETTINGS_BYTES)
    with _named(file):
        refuse_unknown(file.name, settings)
        if file.name in (TOKENIZER, SPECIAL_TOKENS):
            tokens.check_special_tokens(settings)
    return settings


def check_lineage(file: ModelFile) -> None:
    """Checks lineage.json, which no loader reads. Raises `WeightsError`."""
    _object(file, MOST_SETTINGS_BYTES)


@contextmanager
def _named(file: ModelFile) -> Iterator[None]:
    try:
        yield
    except SettingsFault as fault:
        raise WeightsError(file.name, fault.what, fault.remedy) from None


def check_tokens(file: ModelFile) -> None:
    """Checks a JSON object whose keys are tokens, which may be any text. Raises `WeightsError`."""
    _object(file, MOST_TEXT_BYTES)


def check_index(file: ModelFile, tensors: Mapping[str, set[str]]) -> None:
    """Checks model.safetensors.index.json against the weight files. Raises `WeightsError`."""
    weight_map = _object(file, MOST_TEXT_BYTES).get("weight_map")
    if not isinstance(weight_map, dict) or not all(
        isinstance(name, str) for name in weight_map.values()
    ):
        raise WeightsError(file.name, "weight_map must give each tensor a file", _SAVE_AGAIN)
    for key, name in weight_map.items():
        if name not in tensors:
            what = f"puts {key[:100]!r} into {name[:100]!r}, which is not among the weight files"
            raise WeightsError(file.name, what, "give all files that it names, by their names")
        if key not in tensors[name]:
            what = f"puts {key[:100]!r} into {name}, which does not hold it"
            raise WeightsError(file.name, what, _SAVE_AGAIN)
    for name, present in tensors.items():
        if foreign := next((key for key in present if key not in weight_map), None):
            what = f"lacks {foreign[:100]!r}, which {name} holds"
            raise WeightsError(file.name, what, _SAVE_AGAIN)


def check_text(file: ModelFile) -> str:
    """Returns the contents of a text file in UTF-8. Raises `WeightsError`."""
    return _text(file, MOST_TEXT_BYTES)


def _object(file: ModelFile, limit: int) -> dict[str, Any]:
    text = _text(file, limit)
    with _named(file):
        refuse_mark(text)
    hooks: dict[str, Any] = {}
    if file.name in FILES:
        hooks["object_pairs_hook"] = without_repetition
    elif file.name == TOKENIZER_FILE:  # the engine's parser takes none of NaN and Infinity
        hooks["parse_constant"] = _no_constant
    try:
        with _named(file):
            value = bounded_json.loads(text, **hooks)
    except (ValueError, RecursionError) as error:
        if isinstance(error, WeightsError):
            raise
        raise WeightsError(file.name, f"is no JSON: {str(error)[:200]}", _SAVE_AGAIN) from None
    if not isinstance(value, dict):
        raise WeightsError(file.name, "holds no JSON object", _SAVE_AGAIN)
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"it holds {text}")


def _text(file: ModelFile, limit: int) -> str:
    if file.size > limit:
        raise WeightsError(file.name, f"has {file.size:,} bytes", f"at most {limit:,} are accepted")
    with file.open() as content:
        data = content.read(limit + 1)
    if git_lfs.is_pointer(data):
        raise WeightsError(file.name, f"is {git_lfs.WHAT}", git_lfs.REMEDY)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WeightsError(file.name, "is no text in UTF-8", _SAVE_AGAIN) from None
    if "\0" in text:
        raise WeightsError(file.name, "holds a NUL", _SAVE_AGAIN)
    return text
