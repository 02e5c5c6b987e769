"""Settings of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, model_validator

from engine.config.base import Whole
from engine.config.columns import LOSS_TENSORS, names_of
from engine.config.heads import Head, heads_of
from engine.config.method_settings import MethodSettings
from engine.config.methods import registry

"""Policy losses that clip a ratio of policies, or the weight made of it."""
NO_LIMIT = 1.0
"""A clip range of this width or more hardly ever clips: it is switched off."""


class Level(StrEnum):
    """Unit over which one importance weight is computed (docs/algorithm.md, section 7)."""

    TOKEN = "token"  # nosec B105
    SEQUENCE = "sequence"
    GEOMETRIC = "geometric"


class WeightMode(StrEnum):
    """Treatment of importance weights beyond the threshold."""

    TRUNCATE = "truncate"
    MASK = "mask"


class Aggregation(StrEnum):
    """Aggregation of the tokens' policy loss (`engine.losses.aggregation`)."""

    TOKEN_MEAN = "token_mean"  # nosec B105
    SEQUENCE_MEAN = "sequence_mean"
    SEQUENCE_SUM = "sequence_sum"


class KlEstimator(StrEnum):
    """Estimator of the KL divergence to the reference (`engine.losses.kl`)."""

    K1 = "k1"
    K2 = "k2"
    K3 = "k3"


class LossConfig(MethodSettings):
    SECTION = "loss"

    policy: str = "gspo"
    """Policy loss: a name in `engine.losses.POLICY_LOSSES`."""
    clip_low: float = Field(3e-4, ge=0, le=1)
    """Importance ratios are clipped below 1 minus this; 1 is no lower limit."""
    clip_high: float = Field(4e-4, ge=0)
    """Importance ratios are clipped above 1 plus this; above `clip_low` is DAPO's clip-higher."""
    dual_clip: float | None = Field(None, gt=1)
    """Upper bound of a ratio where the advantage is negative (dual clip); unset is off.
    cispo already bounds its ratios on both sides and accepts none."""
    aggregation: Aggregation | None = None
    """Aggregation of the tokens' loss; unset, that of the loss's own paper."""
    aggregation_tokens: Whole = Field(1024, ge=1)
    """Tokens by which `sequence_sum` divides every sequence, whatever its length."""
    importance_correction: bool = True
    """Weight the generator's tokens by the ratio of the learner's policy to the generator's."""
    importance_level: Level = Level.TOKEN
    """Unit over which one such weight is computed."""
    importance_mode: WeightMode = WeightMode.TRUNCATE
    """Treatment of weights beyond the threshold: truncated to it, or masked."""
    importance_threshold: float = Field(2.0, ge=1)
    """C of truncated importance sampling, learner over generator."""
    importance_veto: float | None = Field(None, gt=0, lt=1)
    """An answer with a token of a smaller weight than this is left out whole; unset is off."""
    kl_estimator: KlEstimator = KlEstimator.K3
    """Estimator of the KL divergence to the reference."""
    kl_coefficient: float = Field(1e-3, ge=0)
    """Weight of the KL divergence to the agent's own starting weights; 0 is off."""
    entropy_coefficient: float = Field(0.0, ge=0)
    """Weight of the entropy bonus; 0 is off."""

    def by(self, policy: str) -> LossConfig:
        """Returns these settings with another policy loss, for an update of its own."""
        return self.model_copy(update={"policy": policy})

    @property
    def clips(self) -> bool:
        """Whether the loss clips ratios of policies that leave 1."""
        losses = registry("losses")
        source = None if losses.error(self.policy) else losses.methods.source(self.policy)
        clips = bool(getattr(source, "CLIPS", False))
        return clips and min(self.clip_low, self.clip_high) < NO_LIMIT

    @property
    def needs(self) -> frozenset[str]:
        """What the selected loss needs beyond what every loss has (`engine.config.columns`)."""
        losses = registry("losses")
        source = None if losses.error(self.policy) else losses.methods.source(self.policy)
        return names_of(source, "NEEDS")

    @property
    def heads(self) -> Mapping[str, Head]:
        """Heads of the selected loss, by name."""
        losses = registry("losses")
        return heads_of(None if losses.error(self.policy) else losses.methods.source(self.policy))

    @property
    def row_columns(self) -> list[str]:
        """Columns that the selected loss needs of every row, sorted."""
        return sorted(self.needs - set(LOSS_TENSORS))

    @property
    def reads_reference(self) -> bool:
        """Whether the loss needs log-probabilities under the agent's starting weights."""
        return self.kl_coefficient > 0 or "reference" in self.needs

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> LossConfig:
        if self.dual_clip is not None and self.policy == "cispo":
            raise ValueError(
                f"dual_clip = {self.dual_clip} has no effect on policy = 'cispo', which clips the "
                "ratio itself; leave it unset, or choose gspo or ppo"
            )
        if self.importance_veto is not None and not self.importance_correction:
            raise ValueError(
                f"importance_veto = {self.importance_veto} has no effect without "
                "importance_correction; leave it unset, or turn the correction on"
            )
        return self
