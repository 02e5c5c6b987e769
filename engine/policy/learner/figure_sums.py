"""Figures of an update: sums over micro-batches and ranks, means over optimizer steps.

Invariant: each micro-batch's figures are shares of its minibatch's (`engine.losses.total`), so
their sum over all micro-batches and ranks is the figure of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.losses.total import TotalLoss


class FigureSums:
    """Figures of one optimizer step while its micro-batches run, or of a whole update."""

    def __init__(self) -> None:
        names = ("loss", "policy_loss", "kl", "clip_fraction", "mismatch", "entropy")
        self.shared = dict.fromkeys(names, 0.0)
        """Figures of every loss, by their field of `UpdateStats`."""
        self.own: dict[str, float] = {}
        """Figures of the policy loss alone, by name."""
        self.gradient_norm = 0.0
        """Norm before clipping, over all ranks."""

    def add_micro_batch(self, share: TotalLoss, entropy: float) -> None:
        """Adds one micro-batch's shares; `entropy` is its share of the mean, in nats."""
        self.shared["loss"] += share.loss.item()
        self.shared["policy_loss"] += share.policy.item()
        self.shared["kl"] += share.kl.item()
        self.shared["clip_fraction"] += float(share.clip_fraction)
        self.shared["mismatch"] += float(share.mismatch)
        self.shared["entropy"] += entropy
        for name, value in share.figures.items():
            self.own[name] = self.own.get(name, 0.0) + float(value)

    def add_ranks(self, total: Callable[[Sequence[float]], Sequence[float]]) -> None:
        """Replaces every figure by its sum over all ranks; `total` returns the sums of numbers."""
        summed = iter(total([*self.shared.values(), *self.own.values()]))
        self.shared = dict(zip(self.shared, summed, strict=False))
        self.own = dict(zip(self.own, summed, strict=True))

    def add_step(self, step: FigureSums, steps: int) -> None:
        """Adds the figures of one of `steps` optimizer steps to their means."""
        for name, value in step.shared.items():
            self.shared[name] += value / steps
        for name, value in step.own.items():
            self.own[name] = self.own.get(name, 0.0) + value / steps
        self.gradient_norm += step.gradient_norm / steps
