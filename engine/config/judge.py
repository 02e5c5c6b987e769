"""Settings of the judge: a model that grades answers for the part `judge` of the reward."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from engine.config.base import Settings, Whole
from engine.config.locations import EndpointAddress
from engine.config.secrets import refuse_user

PART = "judge"
"""Name of the part of the reward."""


class JudgeConfig(Settings):
    """A model that grades answers, for `credit.judge`. Its grade over `scale` is the value of the
    part. An answer that gets no grade is not learned from."""

    model: EndpointAddress | None = Field(None, min_length=1)
    """OpenAI-compatible endpoint, `http://HOST:PORT/v1#MODEL`, with the key in `OPENAI_API_KEY`;
    on the command line only. It samples at temperature 0."""
    question: str = Field(
        "How well is the answer written: correct, readable, no longer than needed?",
        min_length=1,
        max_length=4000,
    )
    """The question about each answer, after the problem and the answer."""
    scale: Whole = Field(10, ge=1, le=1000)
    """Best grade; the worst is 0."""
    max_new_tokens: Whole = Field(512, ge=1)
    """Most tokens of its reply, reasoning included."""
    requests_at_once: int = Field(16, ge=1, le=1024)
    """Concurrent requests."""
    request_seconds: float = Field(120.0, gt=0, le=86400)
    """Timeout of one request, after which it is retried."""
    retry_seconds: float = Field(300.0, ge=0, le=86400)
    """Seconds of retries after a first failure, before the run fails."""

    @model_validator(mode="after")
    def _address_holds_no_secret(self) -> JudgeConfig:
        refuse_user(self.model or "")
        return self


def judge_in_use(config: Any) -> bool:
    """Whether the rewards of a `RunConfig` have the part."""
    options = (config.credit.__pydantic_extra__ or {}).get(PART)
    return options is not None and bool(options.weight or options.gate)


def judge_errors(config: Any) -> list[dict[str, Any]]:
    """Returns an error (path, value, reason) if a `RunConfig` uses a judge that is no endpoint."""
    model = config.judge.model
    if not judge_in_use(config) or (model or "").startswith(("http://", "https://")):
        return []
    reason = "credit.judge is in use: name an endpoint, http://HOST:PORT/v1#MODEL"
    return [{"path": "judge.model", "value": model, "reason": reason}]
