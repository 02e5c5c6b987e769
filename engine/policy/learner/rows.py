"""What an agent learns from: its own nodes, as token ids."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One node. Ids and rollout log-probs are the generator's own, never encoded again."""

    prompt_ids: list[int]
    output_ids: list[int]
    rollout_logprobs: list[float]
    advantage: float
    policy_version: int
    temperature: float = 1.0
    """At which it was sampled; the learner's log-probabilities are taken at the same."""
    tree: int = 0
    """Id of its tree in the log, so that an update can say what it learned from."""
    node: int = 0
    """... and of the node in it."""


@dataclass(frozen=True, slots=True)
class LearnedTokens:
    """How a learner saw the first tokens of one node's output:
    `engine.events.vocabulary.LearnedNode`.
    """

    tree: int
    node: int
    entropy: list[float]
    ratio: list[float]


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """What one update of one agent did; means over tokens unless they say otherwise."""

    version: int
    nodes: int
    loss: float
    policy_loss: float
    kl: float
    clip_fraction: float
    entropy: float
    """Of the learner's distribution at the written positions, in nats."""
    gradient_norm: float
    """Before clipping; the mean over the optimizer steps of the update."""
    learning_rate: float
    lag: float
    """Mean policy versions between writing and learning."""
    mismatch: float
    stale_nodes: int
    layout: str = ""
    """How the rows were laid out in forward passes (`engine.policy.learner.layout`)."""
    layout_reason: str = ""
    """Why that is not what `training.row_layout` asked for, or empty."""
    row_tokens: int = 0
    """Tokens that the rows hold, one by one."""
    forwarded_tokens: int = 0
    """... and of the forward passes: more by padding, fewer by shared prefixes."""
    tokens: tuple[LearnedTokens, ...] = field(default=(), compare=False, repr=False)
    """Of every row that was learned from, in the order of the forward passes."""
