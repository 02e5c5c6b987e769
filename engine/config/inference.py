"""Settings of search and evaluation at test time."""

from __future__ import annotations

from pydantic import Field

from engine.config.base import Settings, Whole
from engine.config.locations import RewardModelPath


class InferenceConfig(Settings):
    """Settings of `search` and `evaluate`; a training run ignores them."""

    reward_model: RewardModelPath | None = Field(None, min_length=1)
    """Directory of a reward model; in the browser and by REST `local:NAME`. Among nodes that pass
    equally many public tests, the one that it scores highest is the answer; unset, the latest
    one."""
    trees_at_once: Whole = Field(256, ge=1)
    """Problems that are searched concurrently; a tree's seconds count from its first node."""
    requests_at_once: int = Field(16, ge=1, le=1024)
    """Concurrent requests to one endpoint."""
    request_seconds: float = Field(600.0, gt=0, le=86400)
    """Timeout of one request to an endpoint, after which it is retried."""
    retry_seconds: float = Field(300.0, ge=0, le=86400)
    """Seconds of retries after an endpoint's first failure, before the command gives up."""
