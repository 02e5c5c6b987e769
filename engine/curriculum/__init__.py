"""Curricula: which problems a run is trained on, and in which order.

A new sampler is one module in `methods`, named as here, and one line of this registry;
`training.sampler` then accepts its name.
"""

from __future__ import annotations

from engine.curriculum.methods import learnability, order
from engine.curriculum.sampler import Make

SAMPLERS: dict[str, Make] = {
    "learnability": learnability.sampler,
    "order": order.sampler,
}
