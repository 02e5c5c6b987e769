"""Objectives of the losses that stop a gradient, one module each, by the name of the loss.

`objective(problem, settings, outputs)` returns the scalar of which the loss's gradient is the
gradient: written out again, with whatever the loss holds constant at the weights of the start. A
loss without a module here stops none.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

OBJECTIVES = {
    one.name: import_module(f"{__name__}.{one.name}").objective
    for one in pkgutil.iter_modules(__path__)
}


def clipped_ratio(gaps, settings):
    """The ratio of the start, within the range of the clip."""
    return gaps.exp().clamp(1 - settings.clip_low, 1 + settings.clip_high)


def of_the_rest(problem, settings, outputs):
    """Everything but the policy loss: KL and entropy."""
    still = problem.without_advantages()
    return problem.loss(settings.by("ppo"), outputs, still).loss.item()
