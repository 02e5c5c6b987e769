"""The weights of one policy: run as they are now or as they were at the start, trained, kept.

Invariant: `starting` is the policy as it was before its first update, whatever was learned since.
It is the reference of the divergence, and what a run is compared with at its end.
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
from transformers import PreTrainedModel


class Weights(ABC):
    """What a generator samples from and a learner trains. `model` is run within a context only."""

    model: PreTrainedModel

    @property
    def dtype(self) -> torch.dtype:
        """Type in which the model is run."""
        return self.model.dtype

    @abstractmethod
    def trained(self) -> list[Parameter]:
        """The parameters that learn, in a fixed order; none if the policy is frozen."""

    @abstractmethod
    def parameters(self) -> int:
        """Number of weights that the policy is run with."""

    @abstractmethod
    def current(self) -> AbstractContextManager[PreTrainedModel]:
        """The policy as it is now."""

    @abstractmethod
    def starting(self) -> AbstractContextManager[PreTrainedModel]:
        """The policy as it was at the start; without gradient."""

    @abstractmethod
    def save(self, directory: Path) -> None:
        """What `load` needs, as safetensors."""

    @abstractmethod
    def load(self, directory: Path) -> None:
        """Take the weights that `save` wrote; the start stays what it was."""

    @abstractmethod
    def save_model(self, directory: Path) -> None:
        """The whole model in Hugging Face layout, that needs nothing else."""


class FullWeights(Weights):
    """All weights of a model of its own; the start is a second copy of them.

    With `reference` the copy is kept in memory. Without, `reload` is called for it when it is
    asked for. It is called by `load` too, with the directory. A frozen model has no second copy:
    its start is what it is.
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
    """The weights under the names that a checkpoint has, one at a time.

    Tied ones come once, or with `untied` under each of their names. Adapters that are at work are
    added in; all others count for nothing.
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
