"""Settings of search and evaluation at test time."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings, Whole
from engine.config.locations import RewardModelPath


class InferenceConfig(Settings):
    """`search` and `evaluate`; a training run uses none of it."""

    reward_model: RewardModelPath | None = Field(None, min_length=1)
    """Directory of a reward model, in the browser and by REST `local:NAME`: among nodes that pass
    equally many public tests, the answer is the one that it scores highest. Unset, it is the
    latest."""
    trees_at_once: Whole = Field(256, ge=1)
    """Problems that are searched at the same time; a tree's seconds run from its first node."""
    requests_at_once: int = Field(16, ge=1, le=1024)
    """Answers that one endpoint is asked for at the same time."""
    request_seconds: float = Field(600.0, gt=0, le=86400)
    """One request to an endpoint takes no longer; then it is asked again."""
    retry_seconds: float = Field(300.0, ge=0, le=86400)
    """How long an endpoint is asked again, after its first failure, before the command gives up."""
