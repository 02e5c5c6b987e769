"""Keys of a model's settings files, and the values that each may have.

Invariants: what `loadable` returns holds known keys alone, and names no file, address, repository
or class: any text in it is a plain name, a token, or a chat template. A key that is not listed
never reaches a loader, so a key that a later transformers adds is refused until it is listed.

Each file has a list next to this module, `NAME.txt` for `NAME.json`: a key per line with its kind.
`config.txt`, `generation_config.txt` and `adapter_config.txt` are derived from the pinned
libraries by `python -m tests.helpers.known_settings`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

CONFIG, GENERATION = "config.json", "generation_config.json"
ADAPTER, TOKENIZER = "adapter_config.json", "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
_LISTS = {
    CONFIG: "config.txt",
    GENERATION: "generation_config.txt",
    ADAPTER: "adapter_config.txt",
    TOKENIZER: "tokenizer_config.txt",
    SPECIAL_TOKENS: "tokenizer_config.txt",
}
FILES = frozenset(_LISTS)
"""Names of the settings files."""
TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
MAX_DEPTH = 8
MAX_TEXT = 1000
"""Maximum length of a name."""
MAX_FREE_TEXT = 1_000_000
"""Maximum length of a chat template or another text that is only ever shown or compared."""
MAX_NUMBER = 2**63
UNBOUNDED = frozenset({"time_step_limit"})
"""Keys whose published values are infinite: an interval without an end."""
_AT_LEAST_0 = re.compile(r"(?:^|[._])(?:eps|epsilon)$")
DTYPES = frozenset({"float32", "float16", "bfloat16", "float64", "auto"})
ACTIVATIONS = frozenset({
    "gelu", "gelu_10", "gelu_accurate", "gelu_fast", "gelu_new", "gelu_python",
    "gelu_python_tanh", "gelu_pytorch_tanh", "hardswish", "laplace", "leaky_relu", "linear", "mish",
    "prelu", "quick_gelu", "relu", "relu2", "relu6", "sigmoid", "silu", "sqrtsoftplus", "swish",
    "tanh", "xielu",
})  # fmt: skip
"""Activations of the pinned transformers; a model of another one does not load."""
ROPES = frozenset({
    "axial", "default", "dynamic", "linear", "llama3", "longrope", "mrope", "proportional", "su",
    "yarn",
})  # fmt: skip
"""Rotary embeddings of the pinned transformers, and two names of older files."""
_ROPE_PARTS = frozenset({"rope_scaling", "rope_parameters"})
RUN_HERE = frozenset({"eager", "sdpa"})
RUN_ELSEWHERE = frozenset({
    "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention", "batched_mm",
    "grouped_mm",
})  # fmt: skip
"""Published implementations that are accepted and never handed on: transformers fetches kernels
from a hub for some of them."""
_NAME = re.compile(rf"[A-Za-z0-9_+*|-]{{0,{MAX_TEXT}}}")
_PATTERN = re.compile(rf"[A-Za-z0-9_.+*?|()\[\]^$\\-]{{0,{MAX_TEXT}}}")
_LEAVE_OUT = "leave it out"
_REASONS = {
    "auto_map": "runs code that comes with a model",
    "trust_remote_code": "runs code that comes with a model",
    "custom_pipelines": "runs code that comes with a model",
    "custom_generate": "runs code that comes with a model",
    "transformers_weights": "names another file of weights",
    "quantization_config": "quantised weights cannot be loaded here",
}
"""Keys that users ask about, with why they are not listed."""


class SettingsFault(ValueError):
    """A key or value that is refused: what it is, and the remedy."""

    def __init__(self, what: str, remedy: str = _LEAVE_OUT):
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


@cache
def known(file: str) -> Mapping[str, str]:
    """Returns the kind of each known key of a settings file."""
    text = Path(__file__).with_name(_LISTS[file]).read_text("utf-8")
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {row[0]: row[1] for row in rows if row}


@cache
def model_types() -> frozenset[str]:
    """Returns the values of `model_type` that a causal language model or a part of it may have."""
    return frozenset(Path(__file__).with_name("model_types.txt").read_text("utf-8").split())


def refuse_unknown(file: str, settings: Mapping[str, Any]) -> None:
    """Checks every key and value of a file that is to be published.

    Raises:
        SettingsFault: a key is not listed, or `loadable` refuses a value.
    """
    _Reader(file, strict=True).part(settings, "", 0)


def loadable(file: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a loader may have of a file: listed keys with harmless values. Other keys are
    left out.

    Raises:
        SettingsFault: a listed key has a value of another kind, or weights are quantised.
    """
    return _Reader(file, strict=False).part(settings, "", 0)


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON of a settings file, as `object_pairs_hook`.

    Raises:
        SettingsFault: a key is given twice: loaders take the last, people read the first.
    """
    settings = dict(pairs)
    if len(settings) < len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise SettingsFault(f"gives {key[:200]} twice", "leave one of the two out")
    return settings


def refuse_mark(text: str) -> None:
    """Raises `SettingsFault` if a text begins with a byte order mark: loaders take it for a part of
    the text."""
    if text.startswith("\ufeff"):
        raise SettingsFault("begins with a byte order mark", "save it in UTF-8 without one")


class _Reader:
    """One pass over the settings of a file."""

    def __init__(self, file: str, *, strict: bool):
        self._file, self._kinds, self._strict = file, known(file), strict

    def part(self, settings: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise SettingsFault(f"{path} is nested more than {MAX_DEPTH} times")
        return dict(self._entries(settings, path, depth))

    def _entries(
        self, settings: Mapping[str, Any], path: str, depth: int
    ) -> Iterator[tuple[str, Any]]:
        for key, value in settings.items():
            at = f"{path}.{key}" if path else key
            kind = self._kinds.get(key)
            if kind is None and depth and re.fullmatch(r"[0-9]{1,6}", key):
                kind = "number"  # a layer's own settings, by its number
            if kind is None or (key == "quantization_config" and value is not None):
                self._unknown(key, at, value)
            elif kind == "null":
                if value and self._strict:
                    raise SettingsFault(f"{_shown(at, value)} names a file or a place")
            elif key in TOKEN_IDS:
                yield key, _token_ids(key, at, value)
            elif kind == "note" or (kind == "implementation" and self._is_elsewhere(at, value)):
                continue
            else:
                yield key, self._value(kind, at, value, depth)

    def _unknown(self, key: str, at: str, value: Any) -> None:
        if key == "quantization_config" or self._strict:
            why = "loads code from another repository" if "implementation" in key else ""
            if key in _REASONS:
                raise SettingsFault(f"{at} {_REASONS[key]}")
            raise SettingsFault(f"{_shown(at, value)} {why or 'is no key that is known'}")

    def _is_elsewhere(self, at: str, value: Any) -> bool:
        if value is None:
            return True
        if not isinstance(value, str) or value not in RUN_HERE | RUN_ELSEWHERE:
            raise SettingsFault(f"{_shown(at, value)} loads code from another repository")
        return value in RUN_ELSEWHERE

    def _value(self, kind: str, at: str, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(at, value)
        if isinstance(value, str):
            return self._text(kind, at, value)
        if isinstance(value, list):
            if depth >= MAX_DEPTH:
                raise SettingsFault(f"{at} is nested more than {MAX_DEPTH} times")
            return [self._value(kind, at, one, depth + 1) for one in value]
        if not isinstance(value, Mapping):
            raise SettingsFault(f"{at} is no value of JSON")
        if kind in ("map", "free", "pattern"):  # any keys, such as tokens
            return {
                self._text("free", at, key): self._value(kind, f"{at}.{key[:40]}", one, depth + 1)
                for key, one in value.items()
                if depth < MAX_DEPTH or self._too_deep(at)
            }
        return self.part(value, at, depth + 1)

    def _number(self, at: str, value: float) -> float:
        if isinstance(value, float) and not math.isfinite(value):
            if value == math.inf and at.rpartition(".")[2] in UNBOUNDED:
                return value
            raise SettingsFault(f"{_shown(at, value)} must be a finite number", _SAVE)
        if abs(value) >= MAX_NUMBER and self._file == CONFIG:
            raise SettingsFault(f"{_shown(at, value)} is beyond {MAX_NUMBER:,}")
        if value < 0 and _AT_LEAST_0.search(at):
            raise SettingsFault(f"{_shown(at, value)} must be at least 0", _SAVE)
        return value

    def _too_deep(self, at: str) -> bool:
        raise SettingsFault(f"{at} is nested more than {MAX_DEPTH} times")

    def _text(self, kind: str, at: str, text: str) -> str:
        if kind == "free":
            if len(text) > MAX_FREE_TEXT:
                raise SettingsFault(f"{at} has {len(text):,} characters", "shorten it")
            return text
        if kind == "dtype":
            return self._one_of(at, text, DTYPES, "a dtype")
        if kind == "model_type":
            return self._one_of(at, text, model_types(), "the type of a causal language model")
        if kind == "number":
            raise SettingsFault(f"{_shown(at, text)} must be a number, or true or false", _SAVE)
        pattern = _PATTERN if kind == "pattern" else _NAME
        if not pattern.fullmatch(text):
            raise SettingsFault(f"{_shown(at, text)} must be a plain name", _SAVE)
        if kind == "activation":
            self._one_of(at, text, ACTIVATIONS, "an activation that transformers has")
        if kind == "rope" or (at.endswith(".type") and _ROPE_PARTS & set(at.split("."))):
            self._one_of(at, text, ROPES, "a rotary embedding that transformers has")
        return text

    def _one_of(self, at: str, text: str, names: frozenset[str], what: str) -> str:
        if text.removeprefix("torch.") not in names:
            raise SettingsFault(f"{_shown(at, text)} is not {what}", _SAVE)
        return text


def _token_ids(key: str, at: str, value: Any) -> Any:
    """Returns a token's id, or a list of ids of end tokens. Some files have -1 for none."""
    several = isinstance(value, list) and key == "eos_token_id"
    if value is not None and any(type(one) is not int for one in (value if several else [value])):
        kinds = "a whole number or a list of them" if key == "eos_token_id" else "a whole number"
        raise SettingsFault(f"{_shown(at, value)} must be the id of a token, {kinds}", _SAVE)
    return value


_SAVE = "save the model again with save_pretrained"


def _shown(at: str, value: Any) -> str:
    return f"{at[:200]} = {repr(value)[:60]}"
