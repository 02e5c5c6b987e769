"""Heads: small networks that read a policy's hidden states and give a number for each.

A policy loss names its heads in `HEADS`, a mapping from a name to a `Head`, and finds their outputs
in `LossContext.heads`. Its `Options` extend `HeadOptions`. `engine.policy.models.heads` makes the
networks; a reward model has one too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import Field

from engine.config.base import Settings


class Reads(StrEnum):
    """States of the model's last layer, as its output layer receives them, that a head reads."""

    TOKENS = "tokens"  # nosec B105
    """That before each output token; (N, L) numbers."""
    PROMPT = "prompt"
    """The mean over the tokens of the prompt; (N,) numbers."""
    LAST = "last"
    """That of the last token of all; (N,) numbers. A learner does not forward that token."""


@dataclass(frozen=True)
class Head:
    """A head: what it reads, and its size."""

    reads: Reads
    layers: int = 1
    """The last is linear, and begins at 0; each before it is linear, of the width of the states,
    with GELU and LayerNorm behind it."""
    into_model: bool = True
    """Whether its gradient runs into the model; otherwise the head alone learns from its output."""

    def parameters(self, width: int) -> int:
        """Returns the number of weights over states of that width."""
        return (self.layers - 1) * (width**2 + 3 * width) + width + 1


class HeadOptions(Settings):
    """Base of the options of a loss that has heads."""

    head_learning_rate: float | None = Field(None, gt=0, le=1)
    """Peak learning rate of the loss's heads, on the schedule of the agent; unset, that of the
    agent's weights."""


def heads_of(source: Any) -> Mapping[str, Head]:
    """Returns the heads that the module of a policy loss names; none if it has no `HEADS`.

    Raises:
        ValueError: they are not heads that a learner can give.
    """
    heads = getattr(source, "HEADS", {})
    if not isinstance(heads, Mapping) or not all(
        isinstance(name, str) and isinstance(head, Head) for name, head in heads.items()
    ):
        raise ValueError("HEADS is no mapping of names to engine.config.heads.Head")
    for name, head in heads.items():
        if head.layers < 1:
            raise ValueError(f"HEADS: {name} has layers = {head.layers}; give 1 or more")
        if head.reads is Reads.LAST:
            raise ValueError(
                f"HEADS: {name} reads the last token, which a learner does not forward; "
                "let it read tokens or prompt"
            )
    options = getattr(source, "Options", None)
    if heads and not (isinstance(options, type) and issubclass(options, HeadOptions)):
        raise ValueError("has HEADS, but no Options that extend engine.config.heads.HeadOptions")
    return heads
