"""Gauges: numbers that are read from a training's own events after every step.

A gauge reads what the log holds and nothing else, so a stored log gives the numbers again that the
run logged. A new one is one module in `methods`, named as here, and one line of this registry;
`evaluation.gauges` then accepts its name.
"""

from __future__ import annotations

from engine.config.methods import Methods
from engine.evaluation.gauges.gauge import Gauge, gauge_of
from engine.evaluation.gauges.methods import diversity, success, support

GAUGES: Methods[Gauge] = Methods(
    "gauges",
    gauge_of,
    diversity,
    success,
    support,
)
