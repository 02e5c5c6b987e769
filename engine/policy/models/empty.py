"""A model of the known settings of a directory, built without memory and compared with its weights.

Invariants: transformers never sees a file of the directory, only settings that
`engine.config.model_settings` lets through; a config that describes far more than the weights hold
is refused before anything is allocated, and before building it takes long.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, GenerationConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from engine.config.model_settings import CONFIG, GENERATION, TOKEN_IDS, SettingsFault
from engine.config.model_settings.sizes import SPARE_NUMBERS, Shapes, numbers_in
from engine.policy.models.settings import ModelError, config_settings, settings_of

_CAUSAL_MODELS = frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
SPARE_MODULES = 10_000
"""Parameters and buffers that a model may have in any case, however few tensors it is stored in."""


def model_without_memory(directory: Path, shapes: Shapes, dtype: torch.dtype) -> PreTrainedModel:
    """Returns the model of `config.json`, on torch's `meta` device, after comparison with the
    shapes of its weights.

    Raises:
        ModelError: a setting is refused, or the sizes are not those of the weights.
    """
    file = directory / CONFIG
    settings = config_settings(directory, shapes)
    kind = settings.get("model_type")
    if not isinstance(kind, str):
        raise ModelError(f"{file}: names no model_type; save it with save_pretrained")
    held = numbers_in(shapes)
    try:
        config = CONFIG_MAPPING[kind].from_dict(settings)
        limit = _at_most(2 * held + SPARE_NUMBERS, 4 * len(shapes) + SPARE_MODULES)
        with limit, torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        _refuse_other_class(model, settings)
        return model.eval()
    except SettingsFault as fault:
        raise ModelError(f"{file}: {fault}") from None
    except _TooLarge as excess:
        raise ModelError(
            f"{file}: describes {excess}, and the weight files hold {held:,} numbers in "
            f"{len(shapes):,} tensors; give the config.json of these weights"
        ) from None
    except Exception as error:
        raise ModelError(f"{file}: {_one_line(error)}") from error


def _refuse_other_class(model: PreTrainedModel, settings: Mapping[str, Any]) -> None:
    """Raises `SettingsFault` if config.json names the architecture of one model and the type of
    another one: some differ in nothing that their tensors show."""
    names = settings.get("architectures")
    named = names[0] if isinstance(names, list) and len(names) == 1 else None
    built = type(model).__name__
    if named != built and named in _CAUSAL_MODELS:
        kind = settings.get("model_type")
        what = f"architectures = [{named!r}], and model_type = {kind!r} is that of {built}"
        raise SettingsFault(what, "give the config.json of these weights")


def generation_config_of(directory: Path) -> GenerationConfig | None:
    """Returns the settings of `generation_config.json`; None without the file, for those that the
    model itself has. Of settings that transformers refuses, the ids of tokens alone are taken:
    Grove samples by the settings of the agent.

    Raises:
        ModelError: the file is damaged, or an id is none.
    """
    if not (directory / GENERATION).is_file():
        return None
    settings = settings_of(directory, GENERATION)
    try:
        return GenerationConfig.from_dict(settings)
    except Exception:  # of whatever kind: the settings are a stranger's
        return _token_ids(settings)


def storable(config: GenerationConfig) -> GenerationConfig:
    """Returns settings that `save_pretrained` writes, which refuses what it has read: published
    files have a temperature without `do_sample`, which they mean, and -1 for no token. Of other
    contradictions the ids of tokens are left."""
    settings = config.to_dict()
    for kept in (config, GenerationConfig.from_dict(settings | {"do_sample": True})):
        try:
            kept.validate(strict=True)
        except ValueError:
            continue
        return kept
    return _token_ids(settings)


def _token_ids(settings: Mapping[str, Any]) -> GenerationConfig:
    ids = {key: settings.get(key) for key in TOKEN_IDS}
    listed = {key: one if isinstance(one, list) else [one] for key, one in ids.items()}
    known = {key: [n for n in one if n is not None and n >= 0] for key, one in listed.items()}
    return GenerationConfig.from_dict(
        {key: one if len(one) > 1 else one[0] for key, one in known.items() if one}
    )


def _one_line(error: Exception) -> str:
    """Returns an error's message, of which transformers gives the reason in a later line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


class _TooLarge(Exception):
    """Raised while a model is built that its weights cannot fill: says what it exceeds."""


class _Count:
    """Hook of torch that counts what one thread builds."""

    def __init__(self, numbers: int, tensors: int):
        self._most = numbers, tensors
        self._numbers = self._tensors = 0
        self._thread = threading.get_ident()

    def __call__(self, _: Any, __: str, tensor: torch.Tensor | None) -> None:
        if tensor is None or threading.get_ident() != self._thread:
            return
        self._numbers += tensor.numel()
        self._tensors += 1
        if self._numbers > self._most[0]:
            raise _TooLarge(f"more than {self._most[0]:,} numbers")
        if self._tensors > self._most[1]:
            raise _TooLarge(f"more than {self._most[1]:,} weights and buffers")


@contextmanager
def _at_most(numbers: int, tensors: int) -> Iterator[None]:
    """Lets this thread build modules until they have so many numbers, or weights and buffers."""
    count = _Count(numbers, tensors)
    hooks = [
        torch_module.register_module_parameter_registration_hook(count),
        torch_module.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
