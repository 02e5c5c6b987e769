"""Golden kinds of losses, in float64; rows may have different lengths."""

from __future__ import annotations

import re
import sys
from math import inf
from typing import Any

import torch
from torch import Tensor

from engine.config.golden_kind import Case, lookup, options
from engine.config.importance import Level, WeightMode
from engine.config.loss import KlEstimator, LossConfig
from engine.config.methods import registry
from engine.losses import POLICY_LOSSES, policy_loss, policy_units
from engine.losses.importance import importance_weights
from engine.losses.kl import kl_tokens
from engine.losses.minibatch import MinibatchRows, over_minibatch
from engine.losses.ragged import mask_of, padded, unpadded
from engine.losses.terms import LossContext, Rows, masked_log_ratio, tokens
from engine.losses.total import count_units, total_loss

_OPTIONS = ("aggregation", "aggregation_tokens", "dual_clip")


def policy(case: Case) -> Any:
    inputs = case["inputs"]
    logprobs, mask = padded(inputs["log_probs"]).requires_grad_(), mask_of(inputs)
    old = padded(inputs["old_log_probs"])
    weights = torch.ones_like(old)
    if inputs.get("tis_threshold") is not None or inputs.get("veto") is not None:
        weights = _weights(inputs, inputs.get("tis_threshold"))
    config = _loss_config(inputs)
    context = LossContext(
        old_logprobs_NL=old,
        rollout_logprobs_NL=old,
        advantages_NL=_advantages(inputs),
        mask_NL=mask,
        columns=_tensors(inputs.get("columns", {})),
        logprobs_NL=logprobs,
        entropies_NL=padded(inputs["entropies"]) if "entropies" in inputs else None,
        config=config,
    )
    terms = policy_loss(context, weights)
    loss = terms.loss_sum / policy_units(mask, config)
    loss.backward()
    assert logprobs.grad is not None
    return {"loss": loss.item(), "grad_log_probs": unpadded(logprobs.grad, inputs["log_probs"])}


def method(case: Case) -> Any:
    """A loss that compares rows, reads heads, or knows kinds of rows, over one minibatch. `clip` is
    the range of ratios, or null; an option of that name says whether there is one."""
    inputs = case["inputs"]
    name, clip = inputs["method"], inputs.get("clip")
    lookup(POLICY_LOSSES.every(), name, "method")
    own = options("losses", name, {**inputs, "clip": clip is not None})
    given: dict[str, Any] = {"policy": name, "kl_coefficient": 0.0}
    given |= {name: own.model_dump()} if own else {}
    given |= dict(zip(("clip_low", "clip_high"), clip or (), strict=False))
    given |= {key: inputs[key] for key in _OPTIONS if key in inputs}
    config = LossConfig.model_validate(given)
    logprobs, mask = padded(inputs["log_probs"]).requires_grad_(), mask_of(inputs)
    old = padded(inputs["old_log_probs"])
    columns = _tensors({name: inputs[name] for name in config.row_columns})
    groups = torch.tensor(inputs.get("groups", [0] * len(mask)))
    drift = masked_log_ratio(logprobs.detach(), old, mask).sum(-1)
    figures = MinibatchRows(drift, mask.sum(-1), groups, columns)
    if hook := over_minibatch(config):
        columns = {**columns, **hook(figures, config)}
    further = getattr(registry("losses").methods.source(name), "golden_results", None)
    results = further(figures, config) if further else {}
    shown = torch.tensor([kind == "demonstration" for kind in inputs.get("kinds", [])])
    demonstrations = shown if shown.any() else None
    heads = {name: value.requires_grad_() for name, value in _heads(config, inputs).items()}
    rows = Rows(
        old_logprobs_NL=old,
        rollout_logprobs_NL=old,
        advantages_NL=_advantages(inputs) if "advantages" in inputs else torch.zeros_like(old),
        mask_NL=mask,
        reference_logprobs_NL=_reference(inputs),
        columns=columns,
        demonstrations_N=demonstrations,
        heads=heads,
    )
    units = count_units([mask], config, demonstrations=[demonstrations])
    total = total_loss(logprobs, rows, units, config)
    gradients = torch.autograd.grad(total.loss, [logprobs, *heads.values()])
    results |= {f"grad_{name}": g.tolist() for name, g in zip(heads, gradients[1:], strict=True)}
    gradient = unpadded(gradients[0], inputs["log_probs"])
    return {"loss": total.loss.item(), "grad_log_probs": gradient, **results}


def _heads(config: LossConfig, inputs: dict[str, Any]) -> dict[str, Tensor]:
    """Returns what heads give, one number of each row or of each token."""
    return {
        name: padded(values)
        if isinstance(values[0], list)
        else torch.tensor(values, dtype=torch.float64)
        for name, values in ((name, inputs[name]) for name in config.heads)
    }


def _reference(inputs: dict[str, Any]) -> Tensor | None:
    return padded(inputs["ref_log_probs"]) if "ref_log_probs" in inputs else None


def _tensors(columns: dict[str, list[float]]) -> dict[str, Tensor]:
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in columns.items()}


def is_weights(case: Case) -> Any:
    inputs = case["inputs"]
    return unpadded(_weights(inputs, inputs.get("threshold")), inputs["old_log_probs"])


def kl(case: Case) -> Any:
    inputs, mask = case["inputs"], mask_of(case["inputs"])
    estimator = _estimator(inputs.get("estimator") or case["name"])
    logprobs, reference = padded(inputs["log_probs"]), padded(inputs["ref_log_probs"])
    values = kl_tokens(logprobs, reference, mask, estimator)
    return {
        "per_token": unpadded(values, inputs["log_probs"]),
        "masked_mean_all_tokens": values.sum().item() / tokens(mask),
    }


def _estimator(text: str) -> KlEstimator:
    match = re.search(r"(?<![a-z])k[123]", text)
    return KlEstimator(match.group()) if match else KlEstimator.K3


def total(case: Case) -> Any:
    inputs, mask = case["inputs"], mask_of(case["inputs"])
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
        old_logprobs_NL=padded(inputs["old_log_probs"]),
        rollout_logprobs_NL=padded(inputs.get("rollout_log_probs") or inputs["old_log_probs"]),
        advantages_NL=_advantages(inputs),
        mask_NL=mask,
        reference_logprobs_NL=padded(inputs["ref_log_probs"]),
    )
    logprobs = padded(inputs["log_probs"]).requires_grad_()
    return total_loss(logprobs, rows, count_units([mask], config), config).loss.item()


def _advantages(inputs: dict[str, Any]) -> Tensor:
    rows = inputs["advantages"]
    if isinstance(rows[0], list):
        return padded(rows)
    logprobs = padded(inputs["log_probs"])
    return torch.tensor(rows, dtype=torch.float64)[:, None].expand_as(logprobs)


def _weights(inputs: dict[str, Any], threshold: float | None) -> Tensor:
    return importance_weights(
        padded(inputs["old_log_probs"]),
        padded(inputs["rollout_log_probs"]),
        mask_of(inputs),
        Level(inputs.get("level", "token")),
        WeightMode(inputs.get("mode", "truncate")),
        inf if threshold is None else threshold,
        inputs.get("veto"),
    )


def _loss_config(inputs: dict[str, Any], **settings: Any) -> LossConfig:
    lookup(POLICY_LOSSES.every(), inputs["loss"], "loss")
    low, high = inputs["clip"]
    if own := options("losses", inputs["loss"], inputs):
        settings[inputs["loss"]] = own.model_dump()
    settings |= {key: inputs[key] for key in _OPTIONS if key in inputs}
    return LossConfig(policy=inputs["loss"], clip_low=low, clip_high=high, **settings)
