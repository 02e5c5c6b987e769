"""Curricula: which problems a run is trained on, and in which order.

A new sampler is one module in `methods`, named as here, and one line of this registry;
`training.sampler` then accepts its name.
"""

from __future__ import annotations

from engine.config.methods import Methods
from engine.curriculum.methods import learnability, order
from engine.curriculum.sampler import Make, sampler_of

SAMPLERS: Methods[Make] = Methods(
    "samplers",
    sampler_of,
    learnability,
    order,
)
