"""Golden kinds of losses, in float64; rows may have different lengths."""

from __future__ import annotations

import re
import sys
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from engine.config.loss import KlEstimator, Level, LossConfig, WeightMode
from engine.golden.kinds.case import Case, lookup
from engine.losses import POLICY_LOSSES, policy_loss, policy_units
from engine.losses.importance import importance_weights
from engine.losses.kl import kl_tokens
from engine.losses.methods.gspo import sequence_ratios
from engine.losses.terms import tokens
from engine.losses.total import Rows, count_units, total_loss

_OPTIONS = ("aggregation", "aggregation_tokens", "dual_clip")


def gspo_ratio(case: Case) -> Any:
    inputs = case["inputs"]
    logprobs = _matrix(inputs["log_probs"])
    return sequence_ratios(logprobs, _matrix(inputs["old_log_probs"]), _mask(inputs)).tolist()


def policy(case: Case) -> Any:
    inputs = case["inputs"]
    logprobs, mask = _matrix(inputs["log_probs"]).requires_grad_(), _mask(inputs)
    old = _matrix(inputs["old_log_probs"])
    weights = torch.ones_like(old)
    if inputs.get("tis_threshold") is not None or inputs.get("veto") is not None:
        weights = _weights(inputs, inputs.get("tis_threshold"))
    config = _loss_config(inputs)
    terms = policy_loss(logprobs, old, _advantages(inputs), mask, weights, config)
    loss = terms.loss_sum / policy_units(mask, config)
    loss.backward()
    return {"loss": loss.item(), "grad_log_probs": _unpadded(logprobs.grad, inputs["log_probs"])}


def is_weights(case: Case) -> Any:
    inputs = case["inputs"]
    return _unpadded(_weights(inputs, inputs.get("threshold")), inputs["old_log_probs"])


def kl(case: Case) -> Any:
    inputs, mask = case["inputs"], _mask(case["inputs"])
    estimator = _estimator(inputs.get("estimator") or case["name"])
    logprobs, reference = _matrix(inputs["log_probs"]), _matrix(inputs["ref_log_probs"])
    values = kl_tokens(logprobs, reference, mask, estimator)
    return {
        "per_token": _unpadded(values, inputs["log_probs"]),
        "masked_mean_all_tokens": values.sum().item() / tokens(mask),
    }


def _estimator(text: str) -> KlEstimator:
    match = re.search(r"(?<![a-z])k[123]", text)
    return KlEstimator(match.group()) if match else KlEstimator.K3


def total(case: Case) -> Any:
    inputs, mask = case["inputs"], _mask(case["inputs"])
    threshold, veto = inputs.get("tis_threshold"), inputs.get("veto")
    config = _loss_config(
        inputs,
        kl_coefficient=inputs["kl_coef"],
        kl_estimator=_estimator(inputs.get("estimator", "")),
        importance_correction=threshold is not None or veto is not None,
        importance_threshold=sys.float_info.max if threshold is None else threshold,
        importance_level=Level(inputs.get("level", "token")),
        importance_mode=WeightMode(inputs.get("mode", "truncate")),
        importance_veto=veto,
    )
    rows = Rows(
        old_logprobs_NL=_matrix(inputs["old_log_probs"]),
        rollout_logprobs_NL=_matrix(inputs.get("rollout_log_probs") or inputs["old_log_probs"]),
        advantages_NL=_advantages(inputs),
        mask_NL=mask,
        reference_logprobs_NL=_matrix(inputs["ref_log_probs"]),
    )
    logprobs = _matrix(inputs["log_probs"]).requires_grad_()
    return total_loss(logprobs, rows, count_units([mask], config), config).loss.item()


def _matrix(rows: list[list[float]]) -> Tensor:
    """Returns rows of different lengths padded with 0, which no mask covers."""
    return pad_sequence([torch.tensor(row, dtype=torch.float64) for row in rows], batch_first=True)


def _unpadded(values_NL: Tensor, rows: list[list[float]]) -> list[list[float]]:
    return [values[: len(row)].tolist() for values, row in zip(values_NL, rows, strict=True)]


def _mask(inputs: dict[str, Any]) -> Tensor:
    rows = inputs.get("log_probs") or inputs["old_log_probs"]
    return _matrix(inputs.get("mask") or [[1.0] * len(row) for row in rows])


def _advantages(inputs: dict[str, Any]) -> Tensor:
    rows = inputs["advantages"]
    if isinstance(rows[0], list):
        return _matrix(rows)
    logprobs = _matrix(inputs["log_probs"])
    return torch.tensor(rows, dtype=torch.float64)[:, None].expand_as(logprobs)


def _weights(inputs: dict[str, Any], threshold: float | None) -> Tensor:
    return importance_weights(
        _matrix(inputs["old_log_probs"]),
        _matrix(inputs["rollout_log_probs"]),
        _mask(inputs),
        Level(inputs.get("level", "token")),
        WeightMode(inputs.get("mode", "truncate")),
        inf if threshold is None else threshold,
        inputs.get("veto"),
    )


def _loss_config(inputs: dict[str, Any], **settings: Any) -> LossConfig:
    lookup(POLICY_LOSSES, inputs["loss"], "loss")
    low, high = inputs["clip"]
    settings |= {key: inputs[key] for key in _OPTIONS if key in inputs}
    return LossConfig(policy=inputs["loss"], clip_low=low, clip_high=high, **settings)
