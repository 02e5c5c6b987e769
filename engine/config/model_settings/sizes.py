"""Comparison of the sizes in config.json with the weights that a model holds.

Invariant: a config that passes can be built without loops or lists longer than its weights
warrant. It needs no exact count of parameters: the engine builds the model without memory and
counts (`engine.policy.models.empty`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.config.model_settings import SettingsFault

SPARE_NUMBERS = 2**24
"""Weights that a config may describe in any case; 64 MiB in float32."""
SPARE_LAYERS = 1000
SPARE_FACTOR = 4
"""How many times its weights a config may describe by the estimate, which knows no mixtures of
layers: twice as many as there are in published hybrids."""
MAX_POSITIONS = 2**24
_POSITIONS = ("max_position_embeddings", "n_positions", "max_source_positions",
              "max_target_positions", "max_seq_len")  # fmt: skip
_COUNTS = frozenset({"attention_types", "depth", "num_blocks", "first_k_dense_replace"})
"""Counts that transformers makes lists of while it reads a config, besides all of layers."""
_WIDTHS = ("hidden_size", "n_embd", "d_model", "dim")
_VOCABULARIES = ("vocab_size", "n_words")
_INNER = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")

Shapes = Mapping[str, Sequence[int]]
"""Shape of each tensor by name."""


def check_sizes(config: Mapping[str, Any], shapes: Shapes) -> None:
    """Checks the sizes of config.json, its parts included, against the weights.

    Raises:
        SettingsFault: a size is no positive whole number, or far beyond the weights.
    """
    for part in _parts(config):
        _check_layers(part, len(shapes))
        _check_positions(part, shapes)
        _check_estimate(part, shapes)


def numbers_in(shapes: Shapes) -> int:
    """Returns the number of weights."""
    return sum(math.prod(shape) for shape in shapes.values())


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    pending: list[Any] = [config]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            yield one
            pending += one.values()


def _check_layers(part: Mapping[str, Any], tensors: int) -> None:
    most = max(tensors, SPARE_LAYERS)
    for key, value in part.items():
        if key in _COUNTS or ("layer" in key and "size" not in key and "theta" not in key):
            for one in _whole_numbers(value):
                if one > most:
                    raise _beyond(key, one, f"{tensors:,} tensors in the weights")


def _check_positions(part: Mapping[str, Any], shapes: Shapes) -> None:
    width = _first(part, _WIDTHS) or 1
    learned = any("position" in name or "wpe" in name for name in shapes)
    held = numbers_in(shapes)
    for key in _POSITIONS:
        value = part.get(key)
        if type(value) is not int:
            continue
        if value > MAX_POSITIONS:
            raise _beyond(key, value, f"the {MAX_POSITIONS:,} positions that are accepted")
        if learned and value * width > SPARE_FACTOR * held + SPARE_NUMBERS:
            raise _beyond(key, value, f"{held:,} numbers in the weights")


def _check_estimate(part: Mapping[str, Any], shapes: Shapes) -> None:
    """Compares a lower estimate of the parameters: the embedding, one square matrix per layer, and
    one inner matrix."""
    held, width = numbers_in(shapes), _first(part, _WIDTHS)
    if not width:
        return
    layers = _first(part, ("num_hidden_layers", "n_layer", "n_layers", "num_layers")) or 1
    needed = {
        "vocabulary": (_first(part, _VOCABULARIES) or 0) * width,
        "layers": layers * width * width,
        "inner layer": (_first(part, _INNER) or 0) * width,
    }
    if sum(needed.values()) > SPARE_FACTOR * held + SPARE_NUMBERS:
        largest = max(needed, key=lambda name: needed[name])
        sizes = ", ".join(
            f"{key} = {part[key]:,}"
            for key in (*_WIDTHS, *_VOCABULARIES, *_INNER, "num_hidden_layers", "n_layer")
            if type(part.get(key)) is int
        )
        raise SettingsFault(
            f"{sizes} describe {sum(needed.values()):,} weights, most of them in its {largest}, "
            f"and the files hold {held:,}",
            "give the config.json of these weights",
        )


def _first(part: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    return next((part[key] for key in keys if type(part.get(key)) is int), None)


def _whole_numbers(value: Any) -> Iterator[int]:
    pending = [value]
    while pending:
        one = pending.pop()
        if type(one) is int:
            yield one
        elif isinstance(one, list):
            pending += one


def _beyond(key: str, value: int, limit: str) -> SettingsFault:
    what = f"{key} = {value:,} is far beyond {limit}"
    return SettingsFault(what, "give the config.json of these weights")
