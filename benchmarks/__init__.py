"""Side-by-side measurements against alternatives in common use; each prints one JSON line.

A measurement is one module of this package and one line in `MEASUREMENTS`. The module has `SUMMARY`
(one line), a docstring that says what is compared and how, `add_arguments(parser)`,
`measure(arguments)`, which returns {"ratios", "figures", "versions"}, and `GOALS`, the goals of its
ratios. A ratio is how many times better Grove is than the peer that it names, and is returned only
if the same run verified that both did the same work. Torch and peers are imported inside of
`measure`, so that `--help` is fast; a peer that is not installed raises `PeerMissing`.
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
    "pretrained": "pretrained",
    "vllm": "vllm",
    "api": "api",
    "tracking": "tracking",
    "ui": "ui",
}
"""The module of each measurement, by its name on the command line."""
COMMANDS = {**MEASUREMENTS, "all": "everything", "claims": "claims"}
"""The module of each command: the measurements, all of them, and the scientific claims."""


class PeerMissing(Exception):
    """The peer of a measurement is not installed; contains the remedy."""


class WrongArguments(Exception):
    """Arguments name something that does not exist; contains what does."""


@dataclass(frozen=True)
class Goal:
    """The goal of a ratio: at least a value, or at most."""

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
