"""Optimizers of a policy's weights: its agent's own, and those of groups that updates name.

Invariants:
- All of them step the same parameters; each has moments of its own.
- The state of a group that has not learned since a resume is saved again as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import Parameter
from torch.optim import AdamW, Optimizer

from engine.config.agents import OptimizerConfig, Schedule
from engine.policy.learner.objective import OptimizerGroup
from engine.policy.models.weights import Weights


class Optimizers:
    """AdamW by group. `masters` are the parameters of `weights` that are stepped."""

    def __init__(self, weights: Weights, masters: list[Parameter], own: OptimizerConfig):
        self._weights = weights
        self._masters = masters
        self._settings = self.settings = own
        """The agent's own, and those of the steps to come."""
        self.own = _adamw(masters, own)
        self._groups: dict[str, AdamW] = {}
        self._saved: dict[str, Any] = {}
        """States of groups that have not learned since they were loaded."""
        self._active: AdamW = self.own

    def use(self, group: OptimizerGroup | None, progress: float) -> float:
        """Makes a group's optimizer, or the agent's own for None, that of the steps to come;
        returns its learning rate after `progress` (0 to 1) of the run."""
        settings = self.settings = group.settings if group else self._settings
        self._active = self._of(group) if group else self.own
        rate = settings.learning_rate * schedule_factor(settings, progress)
        for options in self._active.param_groups:
            options["lr"] = rate
        return rate

    def forget_gradients(self) -> None:
        """Removes the gradients of all parameters."""
        self._active.zero_grad(set_to_none=True)

    def clip(self) -> float:
        """Scales the gradients down to the largest norm; returns their norm before."""
        return _number(
            torch.nn.utils.clip_grad_norm_(self._masters, self.settings.max_gradient_norm)
        )

    def step(self) -> None:
        """Steps the parameters along their gradients."""
        self._active.step()

    def state(self) -> dict[str, Any]:
        """Returns the states: `optimizer`, and `groups` by name if some have learned."""
        groups = self._saved | {name: self._state_of(one) for name, one in self._groups.items()}
        return {"optimizer": self._state_of(self.own), **({"groups": groups} if groups else {})}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restores a result of `state`, with the options of this run's settings; groups are
        restored at their first use."""
        self._load(self.own, state["optimizer"])
        self._groups, self._saved = {}, dict(state.get("groups", {}))  # added after 0.2

    def _of(self, group: OptimizerGroup) -> AdamW:
        if group.name not in self._groups:
            made = _adamw(self._masters, group.settings)
            if saved := self._saved.pop(group.name, None):
                self._load(made, saved)
            self._groups[group.name] = made
        return self._groups[group.name]

    def _state_of(self, optimizer: Optimizer) -> dict[str, Any]:
        return self._weights.full_optimizer_state(optimizer)

    def _load(self, optimizer: Optimizer, state: dict[str, Any]) -> None:
        with own_options(optimizer):
            self._weights.load_full_optimizer_state(optimizer, state)


def _adamw(masters: list[Parameter], settings: OptimizerConfig) -> AdamW:
    return AdamW(
        masters,
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon,
        weight_decay=settings.weight_decay,
    )


@contextmanager
def own_options(optimizer: Optimizer) -> Iterator[None]:
    """Keeps betas and other options of this run's settings while the block loads a state."""
    own = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    yield
    for group, options in zip(optimizer.param_groups, own, strict=True):
        group.update(options)


def schedule_factor(settings: OptimizerConfig, progress: float) -> float:
    """Returns the learning rate as a share of its peak, after `progress` (0 to 1) of the run."""
    if progress < settings.warmup_fraction:
        return max(progress / settings.warmup_fraction, 0.05)
    if settings.schedule is Schedule.CONSTANT:
        return 1.0
    share = (progress - settings.warmup_fraction) / (1 - settings.warmup_fraction)
    left = 1 - min(1.0, share)
    if settings.schedule is Schedule.COSINE:
        left = 0.5 * (1 + math.cos(math.pi * min(1.0, share)))
    return settings.final_fraction + (1 - settings.final_fraction) * left


def _number(norm: Tensor) -> float:
    """Returns the value of a norm that may be sharded."""
    return (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
