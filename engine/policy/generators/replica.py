"""A copy of a model's weights for generation on a CPU, in a precision of its own.

A decoding step reads every weight once, so with few rows its time is that of reading them: 2 bytes
per weight in bfloat16 and 1 in int8, instead of 4. int8 weights have one scale per output; products
and activations are in bfloat16. Adapters stay apart from the weights that they change and are not
quantized: an update of 1e-4 added to a weight of 0.1 is less than half a step of int8 and of
bfloat16, and would be rounded away.

Invariants:
- The model that learns is unchanged; the copy shares no weight with it that learns.
- The copy has the weights of the version last passed to `of`. Frozen weights are copied once in a
  process, however many agents and layers have them.
- A row's logits depend on other rows only by the order of sums: no scale belongs to a batch.

Measured with a Llama of 135 million weights, against its own float32 (KL divergence in nats per
token): 0.001 in bfloat16, 0.004 in int8. Activations quantized to 8 bits as well, per token, gave
0.04, and are not offered.
"""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary
from transformers import PreTrainedModel

from engine.config.agents import DecodingWeights

MOST_PACKED_ROWS = 32
"""Most tokens of a pass that the int8 kernel multiplies; above it, a float copy is made for one
product, since the kernel reads the weights once for every few tokens."""
KERNEL_INPUTS = 16
"""Inputs that the int8 kernel reads at a time; of a layer with another number it reads past the end
of its rows. Such layers are copied in bfloat16."""


def resolve(precision: DecodingWeights) -> DecodingWeights:
    """Returns the precision that `auto` means on this CPU; any other as it is."""
    if precision is not DecodingWeights.AUTO:
        return precision
    return DecodingWeights.BFLOAT16 if multiplies_bfloat16() else DecodingWeights.INT8


def multiplies_bfloat16() -> bool:
    """Returns whether the CPU has instructions for products of bfloat16."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


class Replica:
    """The copy of one model at a time."""

    def __init__(self, precision: DecodingWeights):
        self.precision = resolve(precision)
        self._source: PreTrainedModel | None = None
        self._copy: PreTrainedModel | None = None
        self._version: int | None = None
        self._parts: list[_Part] = []

    def expire(self) -> None:
        """Makes the next call of `of` copy the weights again, also of the same version."""
        self._version = None

    @torch.no_grad()
    def of(self, model: PreTrainedModel, version: int) -> PreTrainedModel:
        """Returns the copy of a model at a version, with the adapters that are active."""
        if model is not self._source or self._copy is None:
            self._source, self._copy, self._parts = model, *_copied(model, self.precision)
        elif version == self._version:
            return self._copy
        for part in self._parts:
            part.refresh()
        self._version = version
        return self._copy


class DecodingLinear(nn.Module):
    """A linear layer in a decoding precision, with the adapter of a peft layer if one is active."""

    def __init__(self, source: Any, precision: DecodingWeights):
        super().__init__()
        base = getattr(source, "base_layer", source)
        self.out_features, self.in_features = base.weight.shape
        self._source, self._base = [source], [base]  # in lists: not modules of this one
        self._precision = precision
        if self.in_features % KERNEL_INPUTS:
            self._precision = _unquantized(precision)
        self._dtype = dtype_of(precision)
        self._filled = False

    def refresh(self) -> None:
        """Copies the weights, and the adapter, of the source."""
        (source,), (base,) = self._source, self._base
        if not self._filled or base.weight.requires_grad:
            self._fill(base)
        self._adapters: list[tuple[Tensor, Tensor]] = []
        if base is source or source.disable_adapters:
            return
        for name in source.active_adapters:
            if name in source.scaling:
                down, up = source.lora_A[name].weight, source.lora_B[name].weight
                up = (up * source.scaling[name]).to(self._dtype)
                self._adapters.append((down.to(self._dtype).t().contiguous(), up.t().contiguous()))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.in_features)
        out = self._product(flat)
        for down, up in self._adapters:
            out = torch.addmm(out, flat @ down, up)
        return out.view(*x.shape[:-1], self.out_features)

    def _product(self, flat: Tensor) -> Tensor:
        if self._scales is None:
            return nn.functional.linear(flat, self._weight, self._bias)
        if len(flat) <= MOST_PACKED_ROWS:
            out = torch.ops.aten._weight_int8pack_mm(flat.contiguous(), self._weight, self._scales)
        else:
            dtype = torch.bfloat16 if multiplies_bfloat16() else torch.float32
            weight = self._weight.to(dtype) * self._scales.to(dtype)[:, None]
            out = nn.functional.linear(flat.to(dtype), weight).to(flat.dtype)
        return out if self._bias is None else out + self._bias

    def _fill(self, base: Any) -> None:
        self._copies = [_copy_of(base.weight, self._precision)]
        self._weight, self._scales = self._copies[0].tensors
        self._bias = None
        if base.bias is not None:
            self._copies.append(_copy_of(base.bias, _unquantized(self._precision)))
            self._bias = self._copies[1].tensors[0]
        self._filled = True


class _Copy:
    """A parameter's copy (weights, and scales if they are quantized)."""

    def __init__(self, parameter: Tensor, precision: DecodingWeights):
        scales = None
        if precision is DecodingWeights.INT8:
            weights, scales = quantized(parameter)
        else:
            # Frozen weights in this precision already need no second one.
            weights = parameter.detach().to(dtype_of(precision), copy=parameter.requires_grad)
        self.tensors = weights, scales


_frozen_copies = WeakTensorKeyDictionary()
"""The copies of each frozen parameter that some replica uses, by precision."""


def _copy_of(parameter: Tensor, precision: DecodingWeights) -> _Copy:
    """Returns a new copy of a parameter; of a frozen one that which is in use already, if any."""
    if parameter.requires_grad:
        return _Copy(parameter, precision)
    copies = _frozen_copies.setdefault(parameter, WeakValueDictionary())
    copy_in_use = copies.get(precision)
    if copy_in_use is None:
        copy_in_use = copies[precision] = _Copy(parameter, precision)
    return copy_in_use


def _unquantized(precision: DecodingWeights) -> DecodingWeights:
    """Returns the precision of biases, norms and embeddings."""
    return DecodingWeights.BFLOAT16 if precision is DecodingWeights.INT8 else precision


def quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (int8 weights, bfloat16 scales by output) of a matrix (outputs, inputs).

    Weights are divided by the rounded scale, so that its rounding adds no error.
    """
    weight = weight.detach()
    widest = weight.float().abs().amax(1).clamp(min=1e-30)
    scales = (widest / 127).to(torch.bfloat16)
    # A scale that was rounded down would put the widest weight beyond 127.
    levels = (weight.float() / scales.float()[:, None]).round().clamp(-127, 127)
    return levels.to(torch.int8), scales


def dtype_of(precision: DecodingWeights) -> torch.dtype:
    """Returns the dtype of activations and of weights that are not quantized."""
    return torch.float32 if precision is DecodingWeights.FLOAT32 else torch.bfloat16


class _Plain:
    """Parameters of a module that is no linear layer, and their copies."""

    def __init__(self, source: nn.Module, copied: nn.Module, precision: DecodingWeights):
        self._pairs: list[tuple[nn.Parameter, nn.Parameter]] = []
        self._copies: list[_Copy] = []
        for name, parameter in source._parameters.items():
            if parameter is not None:
                self._copies.append(_copy_of(parameter, _unquantized(precision)))
                own = nn.Parameter(self._copies[-1].tensors[0], requires_grad=False)
                copied._parameters[name] = own
                self._pairs.append((parameter, own))

    def refresh(self) -> None:
        for parameter, own in self._pairs:
            if parameter.requires_grad:
                own.copy_(parameter)


_Part = DecodingLinear | _Plain


def _copied(
    model: PreTrainedModel, precision: DecodingWeights
) -> tuple[PreTrainedModel, list[_Part]]:
    """Returns a copy without linear layers filled, and its parts, which `refresh` fills."""
    # Tensors are not copied twice: each part makes its own copies.
    kept = {id(t): t for t in (*model.parameters(), *model.buffers())}
    copied = copy.deepcopy(model, kept)
    parts: list[_Part] = []
    _replace(model, copied, precision, parts)
    return copied.eval(), parts


def _replace(
    source: nn.Module, copied: nn.Module, precision: DecodingWeights, parts: list[_Part]
) -> None:
    parts.append(_Plain(source, copied, precision))
    for name, child in source.named_children():
        if isinstance(child, nn.Linear) or hasattr(child, "base_layer"):
            layer = DecodingLinear(child, precision)
            setattr(copied, name, layer)
            parts.append(layer)
        else:
            _replace(child, getattr(copied, name), precision, parts)
