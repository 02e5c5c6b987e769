"""Names under which well-known trainers log the figures that rules read, and their settings.

Sources: TRL 1.16 (GRPO and RLOO, "Logged metrics"; PPO's statistics), by transformers' callbacks
with the prefix `train/`; verl 0.9 (`metric_utils.py`, `core_algos.py`, rollout correction);
prime-rl (trainer, orchestrator, also before its agents had names); OpenRLHF. A trainer logs at most
one name of a figure in one row, or several of which the mean counts (one per data set or agent).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from engine.health.setup import Setup

ENTROPY, CLIP_FRACTION, MISMATCH = "entropy", "clip_fraction", "mismatch"
REWARD, VALIDATION = "reward", "validation"
FLAT_SHARE, CUT_SHARE = "flat_share", "cut_share"
GRADIENT_NORM, LEARNING_RATE = "gradient_norm", "learning_rate"
SECONDS, NO_WORK = "seconds", "no_work"

NAMES: dict[str, tuple[str, ...]] = {
    # Nats per token.
    ENTROPY: (
        "entropy", "policy/entropy_avg", "actor/entropy", "actor/entropy_loss", "entropy/mean",
        "entropy/all/mean",
    ),
    # Share of ratios outside of the clip range.
    CLIP_FRACTION: (
        "clip_ratio/region_mean", "clip_ratio", "policy/clipfrac_avg", "actor/pg_clipfrac",
        "ppo_clip_ratio",
    ),
    # |log pi_old - log pi_rollout| per token. Means of the signed difference and of k3 are less
    # than that or, above the rule's limit, far worse than it.
    MISMATCH: (
        "sampling/sampling_logp_difference/mean", "rollout_corr/kl", "mismatch_kl/mean",
        "mismatch_kl/all/mean",
    ),
    REWARD: ("reward", "objective/scores", "critic/score/mean", "reward/mean", "reward/all/mean"),
    # Share of groups with equal rewards.
    FLAT_SHARE: ("frac_reward_zero_std",),
    # Share of answers that reached their limit.
    CUT_SHARE: (
        "completions/clipped_ratio", "response_length/clip_ratio", "is_truncated/mean",
        "is_truncated/all/mean",
    ),
    GRADIENT_NORM: ("grad_norm", "actor/grad_norm", "optim/grad_norm", "actor_grad_norm"),
    LEARNING_RATE: ("learning_rate", "lr", "actor/lr", "optim/lr", "actor_lr"),
    # Seconds of a step, and of what of it is due every few steps only.
    SECONDS: ("step_time", "timing_s/step", "time/step"),
    NO_WORK: ("timing_s/testing", "timing_s/save_checkpoint", "time/save_ckpt"),
    VALIDATION: (),
}  # fmt: skip
"""Exact names of each figure, of transformers' callbacks also after `train/`."""
PATTERNS: dict[str, re.Pattern[str]] = {
    REWARD: re.compile(r"(train/)?([^/]+/)?effective/[^/]+/reward/mean"),
    CUT_SHARE: re.compile(r"(train/)?([^/]+/)?effective/[^/]+/is_truncated/mean"),
    VALIDATION: re.compile(
        r"eval/reward|eval/[^/]+/reward|eval/([^/]+/)+avg@\d+|val-core/.+/mean@\d+"
    ),
}
"""Names with a part of the program's own, such as the data set."""
ADDED = frozenset((NO_WORK,))
"""Figures whose names in one row are summed."""
EVIDENCE = frozenset((ENTROPY, CLIP_FRACTION, MISMATCH, REWARD, FLAT_SHARE, CUT_SHARE))
"""Figures of reinforcement learning alone: a step with none of them is not judged, as those of
supervised training, which rules were not made for."""
_FIGURES = {
    f"{prefix}{name}": figure
    for figure, names in NAMES.items()
    for name in names
    for prefix in ("", "train/")
}

GRADIENT_LIMITS = (
    "max_grad_norm", "actor_rollout_ref.actor.grad_clip", "actor_rollout_ref.actor.optim.clip_grad",
    "optim.max_norm", "trainer.optim.max_norm",
)  # fmt: skip
"""Settings that limit the norm of the gradient."""
SEVERAL_UPDATES = (
    ("num_iterations", None), ("steps_per_generation", "gradient_accumulation_steps"),
    ("actor_rollout_ref.actor.ppo_epochs", None),
    ("data.train_batch_size", "actor_rollout_ref.actor.ppo_mini_batch_size"),
)  # fmt: skip
"""Settings of which the first, above the second or above 1, gives each batch several updates."""
SETTINGS = frozenset(name for pair in SEVERAL_UPDATES for name in pair if name) | set(
    GRADIENT_LIMITS
)


@lru_cache(maxsize=20_000)
def figure_of(name: str) -> str | None:
    """Returns the figure that a trainer logs under this name; None if no rule reads it."""
    if figure := _FIGURES.get(name):
        return figure
    return next((figure for figure, one in PATTERNS.items() if one.fullmatch(name)), None)


def figures_in(numbers: Mapping[str, float]) -> dict[str, float]:
    """Returns the figures of one row of logged numbers: the mean over the names of each."""
    found: dict[str, list[float]] = {}
    for name, value in numbers.items():
        if figure := figure_of(name):
            found.setdefault(figure, []).append(value)
    return {
        figure: sum(values) if figure in ADDED else sum(values) / len(values)
        for figure, values in found.items()
    }


def settings_in(config: Mapping[str, Any]) -> dict[str, float]:
    """Returns those of a program's settings, nested or by dotted names, that rules read."""
    found = {name: _value(config, name.split(".")) for name in SETTINGS}
    given = {name: config.get(name, value) for name, value in found.items()}
    return {name: float(value) for name, value in given.items() if _is_number(value)}


def setup_of(settings: Mapping[str, float], agent: str) -> Setup:
    """Returns what rules need of the settings that `settings_in` returned."""
    limits = [settings[name] for name in GRADIENT_LIMITS if settings.get(name, 0.0) > 0]
    return Setup(
        clips=any(
            name in settings and settings[name] > (settings.get(other, 1e300) if other else 1)
            for name, other in SEVERAL_UPDATES
        ),
        gradient_limits={agent: limits[0]} if limits else {},
    )


def _value(config: Any, path: Iterable[str]) -> Any:
    for name in path:
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
