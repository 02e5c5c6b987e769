"""The selected policy loss, and what its module says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from engine.config.columns import LOSS_TENSORS, names_of
from engine.config.heads import Head, heads_of
from engine.config.method_settings import MethodSettings


class LossMethod(MethodSettings):
    SECTION = "loss"

    policy: str = "gspo"
    """Policy loss: a name in `engine.losses.POLICY_LOSSES`."""

    def by(self, policy: str) -> Self:
        """Returns these settings with another policy loss, for an update of its own."""
        return self.model_copy(update={"policy": policy})

    @property
    def needs(self) -> frozenset[str]:
        """What the loss needs beyond what every loss has (`engine.config.columns`)."""
        return names_of(self.module("policy"), "NEEDS")

    @property
    def row_columns(self) -> list[str]:
        """Columns that the loss needs of every row, sorted."""
        return sorted(self.needs - set(LOSS_TENSORS))

    @property
    def heads(self) -> Mapping[str, Head]:
        """Heads of the loss, by name."""
        return heads_of(self.module("policy"))

    @property
    def clips_ratios(self) -> bool:
        """Whether the loss clips ratios of policies."""
        return bool(getattr(self.module("policy"), "CLIPS", False))
