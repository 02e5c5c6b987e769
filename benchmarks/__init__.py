"""Side-by-side measurements against what people use instead; each prints one JSON line.

A measurement is one module of this package and one line in `MEASUREMENTS`. The module has `SUMMARY`
(one line), a docstring that says what is compared and how, `add_arguments(parser)`,
`measure(arguments)`, which returns {"ratios", "figures", "versions"}, and `GOALS`, what its ratios
should be. A ratio is how many times better we are than the peer that it names, and is only
returned where the same run found that both did the same work. Torch and peers are imported inside
of `measure`, so that `--help` is quick; a peer that is not installed ends it with `PeerMissing`.
"""

from __future__ import annotations

from dataclasses import dataclass

MEASUREMENTS = {
    "sandbox": "sandbox",
    "search": "search",
    "expansion": "expansion",
    "prefix_training": "prefix_training",
    "async": "overlap",
    "siblings": "siblings",
    "step": "step",
    "vllm": "vllm",
    "ui": "ui",
}
"""The module of each measurement, by the name that it is called by."""


class PeerMissing(Exception):
    """What a measurement compares with is not installed; says what to do about it."""


@dataclass(frozen=True)
class Goal:
    """What a ratio should be: so much or more, or so much or less."""

    value: float
    least: bool

    def met(self, ratio: float) -> bool:
        return ratio >= self.value if self.least else ratio <= self.value

    def __str__(self) -> str:
        return f"at {'least' if self.least else 'most'} {self.value:g}"


def at_least(value: float) -> Goal:
    return Goal(value, least=True)


def at_most(value: float) -> Goal:
    return Goal(value, least=False)
