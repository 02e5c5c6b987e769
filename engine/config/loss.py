"""Settings of the loss."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from engine.config import importance
from engine.config.base import Whole
from engine.config.importance import Level, WeightMode
from engine.config.loss_method import LossMethod

NO_LIMIT = 1.0
"""A clip range of this width or more hardly ever clips: it is switched off."""


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


class LossConfig(LossMethod):
    clip_low: float = Field(3e-4, ge=0, le=1)
    """Importance ratios are clipped below 1 minus this; 1 is no lower limit."""
    clip_high: float = Field(4e-4, ge=0)
    """Importance ratios are clipped above 1 plus this; above `clip_low` is DAPO's clip-higher."""
    dual_clip: float | None = Field(None, gt=1)
    """Upper bound of a ratio where the advantage is negative (dual clip); unset is off. Losses that
    have none refuse it."""
    aggregation: Aggregation | None = None
    """Aggregation of the tokens' loss; unset, that of the loss's own paper."""
    aggregation_tokens: Whole = Field(1024, ge=1)
    """Tokens by which `sequence_sum` divides every sequence, whatever its length."""
    importance_correction: importance.Correction = True
    importance_level: importance.Unit = Level.TOKEN
    importance_mode: importance.Mode = WeightMode.TRUNCATE
    importance_threshold: importance.Threshold = 2.0
    importance_veto: importance.Veto = None
    kl_estimator: KlEstimator = KlEstimator.K3
    """Estimator of the KL divergence to the reference."""
    kl_coefficient: float = Field(1e-3, ge=0)
    """Weight of the KL divergence to the agent's own starting weights; 0 is off."""
    entropy_coefficient: float = Field(0.0, ge=0)
    """Weight of the entropy bonus; 0 is off."""

    @property
    def clips(self) -> bool:
        """Whether the loss clips ratios of policies that leave 1."""
        return self.clips_ratios and min(self.clip_low, self.clip_high) < NO_LIMIT

    @property
    def reads_reference(self) -> bool:
        """Whether the loss needs log-probabilities under the agent's starting weights."""
        return self.kl_coefficient > 0 or "reference" in self.needs

    @model_validator(mode="after")
    def _settings_have_an_effect(self) -> LossConfig:
        importance.check_importance(self.importance_correction, self.importance_veto)
        return self
