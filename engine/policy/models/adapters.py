"""LoRA adapters of several agents over one frozen model (arXiv 2106.09685), with peft.

Invariants:
- The frozen model is in memory once, however many adapters there are, and never changes: with
  every adapter off it is the policy that each of them started from, so no reference is copied. It
  is also the model of a frozen agent without an adapter.
- At most one adapter is active at a time.
- An adapter on disk has peft's own layout. Of its settings file only plain settings of LoRA are
  read, so no file can name code to import.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file, save_file
from torch.nn import Parameter
from transformers import PreTrainedModel

from engine.config.agents import AgentConfig, LoraConfig
from engine.policy.models.finite import refuse_stored
from engine.policy.models.load import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    ModelError,
    load_policy,
    model_directory,
    weight_shapes,
)
from engine.policy.models.settings import first_line, read_json, settings_of
from engine.policy.models.weights import Weights

MERGED_FROM = "adapter"
"""Folder of a merged model with the adapter that was merged into it."""
SETTINGS = (
    "r", "lora_alpha", "lora_dropout", "target_modules", "exclude_modules", "rank_pattern",
    "alpha_pattern", "use_rslora", "use_dora", "bias", "fan_in_fan_out", "modules_to_save",
    "layers_to_transform", "layers_pattern", "task_type",
)  # fmt: skip
"""What an adapter's settings file may set: all that published plain LoRA adapters use."""
NOTES = (
    "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision",
    "inference_mode", "megatron_core", "qalora_group_size",
)  # fmt: skip
"""Keys of the file that change nothing about a trained adapter."""


class AdapterBase:
    """A frozen model, and the adapters of the agents that start from it."""

    def __init__(self, reference: str, model: PreTrainedModel):
        self.reference = reference
        """The agents' setting `model`."""
        self.frozen = model.requires_grad_(False)
        self.parameters = model.num_parameters()
        self.peft: PeftModel | None = None
        self._active: str | None = None

    def add(self, agent: AgentConfig, lora: LoraConfig) -> str:
        """Adds a new adapter, which changes nothing yet; returns its name within peft.

        Raises:
            ModelError: the model has no module of a name in `target_modules`.
        """
        name = f"adapter_{len(self.peft.peft_config) if self.peft else 0}"
        options = _settings(lora)
        try:
            if self.peft is None:
                self.peft = get_peft_model(self.frozen, options, adapter_name=name)
            else:
                self.peft.add_adapter(name, options)
        except ValueError as error:
            raise ModelError(
                f"agents.{agent.name}.lora.target_modules = {list(lora.target_modules)}: "
                f"{str(error).splitlines()[0]}"
            ) from None
        self._switch(None)
        return name

    @contextmanager
    def at_work(self, name: str | None) -> Iterator[PreTrainedModel]:
        """Yields the model with this adapter, or with none; restores its state on exit."""
        before = self._active, self.frozen.training
        self._switch(name)
        self.frozen.eval()
        try:
            yield self.frozen
        finally:
            self._switch(before[0])
            self.frozen.train(before[1])

    def _switch(self, name: str | None) -> None:
        if self.peft is None:  # no adapter exists yet, so none has to be disabled
            return
        if name is None:
            self.peft.base_model.disable_adapter_layers()
        else:
            self.peft.base_model.enable_adapter_layers()
            self.peft.set_adapter(name)
        self._active = name


class BaseWeights(Weights):
    """A frozen agent that is the base itself, with every adapter off."""

    def __init__(self, base: AdapterBase):
        self.base = base
        self.model = base.frozen

    def trained(self) -> list[Parameter]:
        return []

    def parameters(self) -> int:
        return self.base.parameters

    def current(self) -> AbstractContextManager[PreTrainedModel]:
        return self.base.at_work(None)

    def starting(self) -> AbstractContextManager[PreTrainedModel]:
        return self.current()

    def save(self, directory: Path) -> None:
        """Does nothing: the weights never change."""

    def load(self, directory: Path) -> None:
        """Does nothing, as `save`."""

    def save_model(self, directory: Path) -> None:
        """Saves a freshly loaded copy: the model in memory contains other agents' adapters."""
        dtype = str(self.model.dtype).removeprefix("torch.")
        load_policy(self.base.reference, "cpu", dtype).model.save_pretrained(directory)


class AdapterWeights(Weights):
    """One agent's adapter over a base that others may share."""

    def __init__(self, base: AdapterBase, agent: AgentConfig, lora: LoraConfig):
        self.base = base
        self.name = base.add(agent, lora)
        self.model = base.frozen
        with self.current():
            self._trained = [p for p in self.model.parameters() if p.requires_grad]

    def trained(self) -> list[Parameter]:
        return self._trained

    def parameters(self) -> int:
        return self.base.parameters + sum(weight.numel() for weight in self._trained)

    def current(self) -> AbstractContextManager[PreTrainedModel]:
        return self.base.at_work(self.name)

    def starting(self) -> AbstractContextManager[PreTrainedModel]:
        return self.base.at_work(None)

    def save(self, directory: Path) -> None:
        """Writes `adapter_model.safetensors` and `adapter_config.json`, as peft reads them."""
        directory.mkdir(parents=True, exist_ok=True)
        weights = get_peft_model_state_dict(
            self.base.peft, adapter_name=self.name, save_embedding_layers=False
        )
        plain = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
        save_file(plain, directory / ADAPTER_WEIGHTS, metadata={"format": "pt"})
        options = copy.copy(self.base.peft.peft_config[self.name])
        options.base_model_name_or_path = str(model_directory(self.base.reference).absolute())
        options.inference_mode = True
        options.target_modules = sorted(options.target_modules)  # a set has no fixed order
        options.save_pretrained(str(directory))

    def load(self, directory: Path) -> None:
        with self.current():
            _fill(self.base.peft, self.name, directory)

    def save_model(self, directory: Path) -> None:
        """Writes the base with the adapter merged into its weights, and the adapter in `adapter/`.

        The merged model needs no other files: the registry, another run, transformers or an
        inference server can load it, even if the base is moved. It is merged on the CPU, in a
        fresh copy of the base, so the base of the run is unchanged. In bfloat16 the sum is rounded
        to that type; `adapter/` is exact.
        """
        self.save(directory / MERGED_FROM)
        dtype = str(self.model.dtype).removeprefix("torch.")
        load_policy(str(directory / MERGED_FROM), "cpu", dtype).model.save_pretrained(directory)


def with_adapter(model: PreTrainedModel, directory: Path) -> PreTrainedModel:
    """Returns the model with the adapter of a directory merged into its weights.

    Raises:
        ModelError: the adapter is of another kind, or of another model.
    """
    try:
        adapted = get_peft_model(model, _described(directory))
    except ModelError:
        raise
    except Exception as error:  # of whatever kind: the settings are a stranger's
        raise ModelError(f"{directory / ADAPTER_CONFIG}: {first_line(error)}") from error
    _fill(adapted, "default", directory)
    return adapted.merge_and_unload()


def _settings(lora: LoraConfig) -> PeftLoraConfig:
    every = lora.target_modules == ("all-linear",)
    return PeftLoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear" if every else list(lora.target_modules),
        task_type="CAUSAL_LM",
    )


def _described(directory: Path) -> PeftLoraConfig:
    """Returns the settings that an adapter was trained with."""
    file = directory / ADAPTER_CONFIG
    data = read_json(file, "the adapter's settings")
    defaults = PeftLoraConfig().to_dict()
    for key, value in data.items():
        supported = key in SETTINGS or key in NOTES or not value
        if not supported and value != defaults.get(key):
            raise ModelError(f"{file}: {key} is no setting of plain LoRA; merge the adapter first")
    known = settings_of(directory, ADAPTER_CONFIG)
    _check_ranks(file, known)
    return PeftLoraConfig(**{key: known[key] for key in SETTINGS if key in known})


def _check_ranks(file: Path, settings: Mapping[str, Any]) -> None:
    """Checks that no rank is above all sizes of the weights: peft allocates before it compares."""
    shapes = weight_shapes([file.with_name(ADAPTER_WEIGHTS)])
    largest = max((size for shape in shapes.values() for size in shape), default=0)
    named = settings.get("rank_pattern") or {}
    for key, rank in {"r": settings.get("r"), **named}.items():
        if rank is not None and (type(rank) is not int or not 0 < rank <= largest):
            raise ModelError(
                f"{file}: {key} = {rank!r} is no rank of weights of sizes up to {largest:,}; "
                "give the settings of this adapter"
            )


def _fill(model: PeftModel, name: str, directory: Path) -> None:
    file = directory / ADAPTER_WEIGHTS
    weights = load_file(file)
    expected = set(get_peft_model_state_dict(model, adapter_name=name, save_embedding_layers=False))
    if expected != set(weights):
        odd = min(expected ^ set(weights))
        what = "lacks" if odd in expected else "holds, but its settings do not use,"
        raise ModelError(f"{file}: {what} {odd}; it is not of this model or of its settings")
    refuse_stored(weights, file)
    try:
        set_peft_model_state_dict(model, weights, adapter_name=name)
    except RuntimeError as error:
        raise ModelError(f"{file}: {str(error).splitlines()[-1].strip()}") from None
