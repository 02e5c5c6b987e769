"""Training rows of an agent, its own nodes and demonstrations as token ids, and statistics of an
update."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.policy.types import Piece

DEMONSTRATION = -1
"""Node of a row that shows the policy an answer that it did not sample."""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One node, or a demonstration. Ids and rollout log-probs of a node are the generator's own,
    never encoded again."""

    prompt_ids: list[int]
    output_ids: list[int]
    rollout_logprobs: list[float]
    advantage: float | list[float]
    """Of all tokens of the output, or of each one."""
    policy_version: int
    """Version that sampled it; of an answer in pieces the oldest, by which it is stale."""
    temperature: float = 1.0
    """Temperature of the sample; the learner's log-probabilities are at the same."""
    tree: int = 0
    """Id of its tree in the log, by which an update reports its rows."""
    node: int = 0
    """... and of the node in it."""
    pieces: tuple[Piece, ...] = ()
    """Pieces of the output, in order, if several versions sampled it; else empty."""
    columns: dict[str, float] = field(default_factory=dict)
    """Numbers of the node that the policy loss needs, by name."""

    @property
    def is_demonstration(self) -> bool:
        """Whether the policy is shown this answer. Such a row has no rollout: it is never stale,
        its correction weight is 1, and it is in no mean over sampled tokens."""
        return self.node == DEMONSTRATION

    def lag(self, version: int) -> float:
        """Returns the mean over its tokens of the versions by which this one is newer (AReaL
        records a version per token; Fu et al., arXiv 2505.24298, section 4.1)."""
        if not self.pieces:
            return version - self.policy_version
        tokens = sum(piece.tokens for piece in self.pieces)
        return sum((version - piece.version) * piece.tokens for piece in self.pieces) / tokens


@dataclass(frozen=True, slots=True)
class TokenStats:
    """A learner's statistics of the first tokens of one node's output:
    `engine.events.vocabulary.LearnedNode`.
    """

    tree: int
    node: int
    entropy: list[float]
    ratio: list[float]


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """Statistics of one update of one agent; means over tokens unless stated otherwise."""

    version: int
    nodes: int
    """Rows that the policy sampled."""
    loss: float
    policy_loss: float
    kl: float
    clip_fraction: float
    entropy: float
    """Of the learner's distribution at the output positions, in nats."""
    gradient_norm: float
    """Before clipping; the mean over the optimizer steps of the update."""
    learning_rate: float
    lag: float
    """Mean over nodes of the policy versions between generation and update (`TrainingRow.lag`)."""
    mismatch: float
    stale_nodes: int
    layout: str = ""
    """Layouts of the rows in forward passes (`engine.policy.learner.layout`)."""
    layout_reason: str = ""
    """Why that is not the one of `training.row_layout`, or empty."""
    row_tokens: int = 0
    """Input tokens of all rows."""
    forwarded_tokens: int = 0
    """... and of the forward passes: more by padding, fewer by shared prefixes."""
    figures: dict[str, float] = field(default_factory=dict)
    """Means over tokens of the policy loss's own figures, by name."""
    tokens: tuple[TokenStats, ...] = field(default=(), compare=False, repr=False)
    """Of every sampled row in the update, in the order of the forward passes."""
