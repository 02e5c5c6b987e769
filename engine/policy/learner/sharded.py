"""Weights of one policy sharded over ranks, with PyTorch's FSDP2 (`fully_shard`).

Each rank holds its part of every weight, of its gradient and of the optimizer's moments, in
float32; a layer's weights are gathered for its forward and its backward pass, in the dtype in which
the model runs. Gradients are summed, not averaged: a rank's loss is its part of the batch's.

Invariant: `full_state` and `load_full_state` use whole tensors by name, so that nothing saved
depends on the number of ranks. Both, like every forward pass, are called by all ranks together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn import Parameter
from torch.optim import Optimizer
from transformers import PreTrainedModel

from engine.policy.models.weights import Weights

GATHERED = StateDictOptions(full_state_dict=True, cpu_offload=True)
WHOLE = StateDictOptions(full_state_dict=True)


class ShardedWeights(Weights):
    """A rank's part of a trained model; with `reference`, of the starting model as well."""

    def __init__(
        self,
        model: PreTrainedModel,
        mesh: DeviceMesh,
        dtype: torch.dtype,
        *,
        reference: bool,
        fill: Callable[[PreTrainedModel], None] = lambda model: None,
    ):
        """`model` is whole, in the dtype of the optimizer; it runs in `dtype`. `fill` allocates and
        fills a model without memory, once it is sharded."""
        self._dtype = dtype
        self._count = model.num_parameters()
        self._starting: PreTrainedModel | None = None
        if reference:
            start = copy.deepcopy(model).requires_grad_(False)
            if dtype.itemsize < 4:  # it runs in this dtype only, and is never stepped
                for weight in start.parameters():
                    weight.data = weight.data.to(dtype)
            self._starting = _sharded(start, mesh, dtype)
            fill(self._starting)
        self.model = _sharded(model.requires_grad_(True), mesh, dtype)
        fill(self.model)

    @property
    def dtype(self) -> torch.dtype:
        return self._dtype

    def trained(self) -> list[Parameter]:
        return list(self.model.parameters())

    def parameters(self) -> int:
        return self._count

    def current(self) -> AbstractContextManager[PreTrainedModel]:
        return nullcontext(self.model)

    def starting(self) -> AbstractContextManager[PreTrainedModel]:
        assert self._starting is not None, "there is no reference without a KL coefficient"
        return nullcontext(self._starting)

    def full_state(self) -> dict[str, Tensor]:
        """Returns all weights by name, on the CPU of rank 0; empty on the others."""
        return get_model_state_dict(self.model, options=GATHERED)

    def load_full_state(self, state: dict[str, Tensor]) -> None:
        """Loads this rank's part of whole weights."""
        set_model_state_dict(self.model, state, options=WHOLE)

    def full_optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        """Returns what `optimizer.state_dict()` of a single rank would, on rank 0; empty on the
        others."""
        if not optimizer.state:
            # torch would make the state by a step along zero gradients, which counts as one.
            return optimizer.state_dict()
        gathered = get_optimizer_state_dict(self.model, optimizer, options=GATHERED)
        if not gathered:
            return {}
        names = self._names()
        groups = [
            {**group, "params": list(range(len(names)))} for group in gathered["param_groups"]
        ]
        state = {
            n: gathered["state"][name] for n, name in enumerate(names) if name in gathered["state"]
        }
        return {"state": state, "param_groups": groups}

    def load_full_optimizer_state(self, optimizer: Optimizer, state: dict[str, Any]) -> None:
        """Loads this rank's part of the state of an optimizer of a single rank."""
        if not state["state"]:  # it has not stepped yet
            optimizer.state.clear()
            return
        # torch makes the state that it fills by a step, unless there are gradients.
        optimizer.zero_grad(set_to_none=True)
        names = self._names()
        groups = [{**group, "params": names} for group in state["param_groups"]]
        named = {names[n]: value for n, value in state["state"].items()}
        set_optimizer_state_dict(
            self.model, optimizer, {"state": named, "param_groups": groups}, options=WHOLE
        )

    def save(self, directory: Path) -> None:
        raise NotImplementedError("the policy's own process saves the whole weights")

    load = save_model = save

    def _names(self) -> list[str]:
        return [name for name, _ in self.model.named_parameters()]


def _sharded(model: PreTrainedModel, mesh: DeviceMesh, dtype: torch.dtype) -> PreTrainedModel:
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    if dtype.itemsize >= 4:
        policy = MixedPrecisionPolicy()
    layers = set(model._no_split_modules or ())
    for module in list(model.modules()):
        if type(module).__name__ in layers:
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)
            module.set_gradient_divide_factor(1.0)
    return model
