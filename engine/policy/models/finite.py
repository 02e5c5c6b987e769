"""Weights that are no numbers: NaN, and infinities.

One such weight makes every output of a model NaN, or hides within an unused row until it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import Module

from engine.policy.models.settings import ModelError

_REMEDY = "save the model again, from before it diverged, or copy the file again"


def is_finite(tensor: Tensor) -> bool:
    """Returns whether all numbers of a tensor are finite, in one pass and without a copy: its
    smallest and its largest one are NaN if any is."""
    if not tensor.numel():
        return True
    return bool(torch.isfinite(torch.stack(torch.aminmax(tensor))).all())


def refuse_not_finite(model: Module, files: Iterable[Path]) -> None:
    """Checks the weights of a model that was loaded from files.

    Raises:
        ModelError: one is not finite; names the tensor, its file and where it is.
    """
    for name, weight in model.named_parameters():
        if not is_finite(weight.detach()):
            raise ModelError(_fault_in(files) or _beyond(name, weight.dtype, files))


def refuse_stored(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Checks tensors that were read from a file.

    Raises:
        ModelError: as `refuse_not_finite`.
    """
    for name, tensor in tensors.items():
        if not is_finite(_plain(tensor)):
            raise ModelError(_fault(name, tensor, file))


def refuse_part(name: str, weight: Tensor, stored: Tensor, file: Path, first_row: int) -> None:
    """Checks the part of a weight that was filled with rows of a tensor, from `first_row`.

    Raises:
        ModelError: as `refuse_not_finite`.
    """
    if is_finite(weight):
        return
    if is_finite(_plain(stored)):
        raise ModelError(_beyond(name, weight.dtype, [file]))
    raise ModelError(_fault(name, stored, file, first_row))


def _fault_in(files: Iterable[Path]) -> str:
    """Returns what is wrong with the first such tensor of the files; empty if none is, as its name
    or its dtype may be another one in the model."""
    for file in files:
        with safe_open(file, framework="pt") as stored:
            for name in stored.keys():  # noqa: SIM118
                tensor = stored.get_tensor(name)
                if tensor.is_floating_point() and not is_finite(_plain(tensor)):
                    return _fault(name, tensor, file)
    return ""


def _plain(tensor: Tensor) -> Tensor:
    """Returns a tensor of which torch knows the extremes; of a float of 8 bits it does not."""
    return tensor.float() if tensor.dtype.itemsize == 1 else tensor


def _fault(name: str, tensor: Tensor, file: Path, first_row: int = 0) -> str:
    plain = _plain(tensor)
    odd = ~torch.isfinite(plain)
    place = odd.nonzero()[0].tolist()
    count = int(odd.sum())
    what = "NaN" if torch.isnan(plain[odd][0]) else "an infinity"
    place[:1] = [row + first_row for row in place[:1]]
    more = f", and {count - 1:,} more that are no finite numbers" if count > 1 else ""
    return f"{file}: tensor {name!r} holds {what} at {place}{more}; {_REMEDY}"


def _beyond(name: str, dtype: torch.dtype, files: Iterable[Path]) -> str:
    kind = str(dtype).removeprefix("torch.")
    where = ", ".join(str(file) for file in files)
    return f"{where}: tensor {name!r} holds numbers beyond {kind}; save the model in {kind}"
