"""Float32 master weights of a model that runs in a lower precision.

Near 0.02, where most weights of a language model are, bfloat16 has steps of 1e-4: an update of
1e-6 added there is rounded away, and the model would hardly learn at all. So the optimizer works
on float32 copies, and the model runs with these copies rounded after every step.

Invariant: weights in float32 or a finer dtype are their own copies, and are never changed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Parameter


class MasterWeights:
    """The parameters that an optimizer steps, one for each of `run`, in the same order.

    Costs 8 bytes per weight of a lower precision, for the copy and its gradient.
    """

    def __init__(self, run: Sequence[Parameter]):
        self.run = list(run)
        self.masters = [
            weight if weight.element_size() >= 4 else Parameter(weight.detach().float())
            for weight in self.run
        ]

    def take_gradients(self) -> None:
        """Accumulates the gradients of a backward pass in float32, and clears those of `run`."""
        for weight, master in self._copied():
            if weight.grad is not None:
                gradient = weight.grad.float()
                master.grad = gradient if master.grad is None else master.grad.add_(gradient)
                weight.grad = None

    @torch.no_grad()
    def round(self) -> None:
        """Copies the masters, rounded, to the weights that run."""
        for weight, master in self._copied():
            weight.copy_(master)

    def state(self) -> list[Tensor]:
        """Returns the copies; a checkpoint's weights are only their rounding."""
        return [master.detach() for _, master in self._copied()]

    @torch.no_grad()
    def load_state(self, state: Sequence[Tensor]) -> None:
        """Raises ValueError if the number of copies differs."""
        for (_, master), saved in zip(self._copied(), state, strict=True):
            master.copy_(saved)

    def _copied(self) -> list[tuple[Parameter, Parameter]]:
        return [(w, m) for w, m in zip(self.run, self.masters, strict=True) if m is not w]
