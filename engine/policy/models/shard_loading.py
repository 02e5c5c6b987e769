"""Shard-wise loading of a model from its safetensors: no rank ever holds the whole model.

A model is built without memory (on torch's `meta` device), sharded, and each rank then reads its
own part of every tensor. It holds its shards and the part that it is reading.

Invariant: a model that cannot be read tensor by tensor under its own names is never partly
filled: `tensor_files` returns None for it, before any weights are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from engine.policy.models.empty import model_without_memory
from engine.policy.models.finite import refuse_part
from engine.policy.models.load import is_adapter, weight_files, weight_shapes
from engine.policy.models.settings import ModelError
from engine.resources.model_files.weights_fit import UNTIED

_ROWS = 1024
"""Rows of two tensors that are compared at once."""


def empty_model(directory: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Returns the model of `config.json` with no memory behind its weights.

    Raises:
        ModelError: a setting is refused, or describes more than the weights hold.
    """
    return model_without_memory(directory, weight_shapes(weight_files(directory)), dtype)


def tensor_files(directory: Path) -> dict[str, Path] | None:
    """Returns the file of each of the model's tensors, by name; None if the files have other names
    than the model (an adapter, experts that are stored separately), so that it must be loaded
    whole.

    Raises:
        ModelError: weights that config.json ties are stored under each name, and differ. All ranks
            find it, before any of them reads its part.
    """
    if is_adapter(directory):
        return None
    files: dict[str, Path] = {}
    for file in weight_files(directory):
        with safe_open(file, framework="pt") as stored:
            files |= dict.fromkeys(stored.keys(), file)
    model = empty_model(directory, torch.float32)
    if not _bare_buffers_only(model):
        return None
    expected = {name for name, _ in model.named_parameters()}
    # Tied weights may be stored under each of their names; parameters have one.
    all_names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    if not expected <= files.keys() <= all_names:
        return None
    for first, second in _tied(model):
        if first in files and second in files and not _are_equal(files, first, second):
            raise ModelError(f"{files[second]}: {'; '.join(UNTIED)}")
    return files


def _tied(model: PreTrainedModel) -> Iterator[tuple[str, str]]:
    """Yields the names of weights that are one: the parameter's own, and a further one."""
    own: dict[int, str] = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        first = own.setdefault(id(weight), name)
        if first != name:
            yield first, name


def _are_equal(files: Mapping[str, Path], first: str, second: str) -> bool:
    """Returns whether two stored tensors are equal; reads a few rows of each at a time."""
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(safe_open(files[name], framework="pt")).get_slice(name)
            for name in (first, second)
        )
        if one.get_shape() != other.get_shape():
            return False
        starts = range(0, one.get_shape()[0], _ROWS)
        pairs = ((one[at : at + _ROWS], other[at : at + _ROWS]) for at in starts)
        return all(torch.equal(a.float(), b.float()) for a, b in pairs)


@torch.no_grad()
def fill(model: PreTrainedModel, files: Mapping[str, Path], device: str) -> None:
    """Allocates a sharded model that has no memory, and reads this rank's part of every tensor.

    Raises:
        ValueError: a tensor has another shape than the model's, or holds what is no finite number;
            names it and its file.
    """
    model.to_empty(device=device)
    model.tie_weights()  # to_empty allocated each name separately
    for name, weight in model.named_parameters():
        with safe_open(files[name], framework="pt") as stored:
            tensor = stored.get_slice(name)
            if tuple(tensor.get_shape()) != tuple(weight.shape):
                raise ValueError(
                    f"{files[name]}: {name} has shape {tuple(tensor.get_shape())}, and config.json "
                    f"requires {tuple(weight.shape)}; they do not belong together"
                )
            rows = _rows(weight)
            part = tensor[rows]
            _local(weight).copy_(part)
            refuse_part(name, _local(weight), part, files[name], rows.start or 0)
    _fill_buffers(model)


def _rows(weight: Tensor) -> slice:
    """Returns this rank's rows of the tensor: FSDP divides the first dimension as `chunk` does."""
    if not isinstance(weight, DTensor):
        return slice(None)
    mesh = weight.device_mesh
    part = -(-weight.shape[0] // mesh.size())
    first = min(weight.shape[0], part * mesh.get_local_rank())
    return slice(first, min(weight.shape[0], first + part))


def _local(weight: Tensor) -> Tensor:
    return weight.to_local() if isinstance(weight, DTensor) else weight


def _bare_buffers_only(model: PreTrainedModel) -> bool:
    """Returns whether no buffer is stored, and all are in modules without parameters, which
    transformers can initialize separately."""
    stored = model.state_dict().keys() - {
        name for name, _ in model.named_parameters(remove_duplicate=False)
    }
    return not stored and all(_is_bare(module) for module in model.modules())


def _is_bare(module: torch.nn.Module) -> bool:
    return not module._buffers or not list(module.parameters(recurse=False))


def _fill_buffers(model: PreTrainedModel) -> None:
    """Fills buffers that depend on the config alone, such as rotary frequencies."""
    for module in model.modules():
        if module._buffers:
            for buffer in module.buffers(recurse=False):
                if buffer.is_floating_point():
                    buffer.fill_(torch.nan)
            model._init_weights(module)
    if unset := [name for name, b in model.named_buffers() if b.isnan().any()]:
        raise ValueError(f"{type(model).__name__} does not say how {unset[0]} is set up")
