"""The weights of one policy: current and starting ones, their training and their storage.

Invariant: `starting` is the policy as it was before its first update, regardless of later ones.
It is the reference of the divergence, and the baseline of a run's final comparison.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer
from transformers import PreTrainedModel


class Weights(ABC):
    """Weights that a generator samples from and a learner trains. `model` runs only within a
    context."""

    model: PreTrainedModel

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the model runs."""
        return self.model.dtype

    @abstractmethod
    def trained(self) -> list[Parameter]:
        """Returns the trained parameters, in a fixed order; none if the policy is frozen."""

    @abstractmethod
    def parameters(self) -> int:
        """Returns the number of weights with which the policy runs."""

    @abstractmethod
    def current(self) -> AbstractContextManager[PreTrainedModel]:
        """Returns a context with the current policy."""

    @abstractmethod
    def starting(self) -> AbstractContextManager[PreTrainedModel]:
        """Returns a context with the starting policy; without gradient."""

    def full_optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """Returns the state of an optimizer of the trained parameters, whole."""
        return optimizer.state_dict()

    def load_full_optimizer_state(self, optimizer: Optimizer, state: dict[str, Any]) -> None:
        """Loads a result of `full_optimizer_state`."""
        optimizer.load_state_dict(state)

    @abstractmethod
    def save(self, directory: Path) -> None:
        """Writes what `load` needs, as safetensors."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Loads the weights that `save` wrote; the starting weights do not change."""

    @abstractmethod
    def save_model(self, directory: Path) -> None:
        """Writes the whole model in Hugging Face layout, which needs no other files."""


class FullWeights(Weights):
    """All weights of a model of its own; the starting weights are a second copy of them.

    With `reference` the copy is kept in memory. Without, `starting` gets it from `reload` at its
    first call. `load` calls `reload` too, with the directory. A frozen model has no second copy:
    it always equals its starting weights.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        reload: Callable[[Path | None], PreTrainedModel],
        *,
        trainable: bool = True,
        reference: bool = True,
    ):
        self.model = model.requires_grad_(trainable)
        self._reload = reload
        self._starting = None if trainable else model
        if trainable and reference:
            self._starting = copy.deepcopy(model).requires_grad_(False)

    def trained(self) -> list[Parameter]:
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def parameters(self) -> int:
        return self.model.num_parameters()

    def current(self) -> AbstractContextManager[PreTrainedModel]:
        return nullcontext(self.model)

    def starting(self) -> AbstractContextManager[PreTrainedModel]:
        if self._starting is None:
            self._starting = self._reload(None).requires_grad_(False)
        return nullcontext(self._starting)

    def save(self, directory: Path) -> None:
        self.save_model(directory)

    def load(self, directory: Path) -> None:
        self.model.load_state_dict(self._reload(directory).state_dict())

    def save_model(self, directory: Path) -> None:
        self.model.save_pretrained(directory)


def checkpoint_tensors(
    model: PreTrainedModel, *, untied: bool = False
) -> Iterator[tuple[str, Tensor]]:
    """Yields the weights under the names of a checkpoint, one at a time.

    Tied ones occur once, or with `untied` under each of their names. Active adapters are merged in;
    all others are ignored.
    """
    for name, parameter in model.named_parameters(remove_duplicate=not untied):
        owner, _, kind = name.rpartition(".base_layer.")
        if owner:
            yield f"{owner}.{kind}", _adapted(model.get_submodule(owner), kind, parameter)
        elif ".lora_" not in name:
            yield name, parameter


def _adapted(layer: Any, kind: str, parameter: Tensor) -> Tensor:
    if kind != "weight" or layer.disable_adapters:
        return parameter
    changes = [layer.get_delta_weight(a) for a in layer.active_adapters if a in layer.scaling]
    return sum(changes, parameter.detach())
