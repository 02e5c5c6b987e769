"""Names of the columns that methods may need: data of nodes, and of the rows learned from.

An advantage names in `NEEDS` the columns of its group (`engine.credit.columns` makes them), and in
`MAKES` those that it adds to rows for a loss. A loss names in `NEEDS` what of its context
(`engine.losses.terms.LossContext`) must be there. A composer names in `NEEDS` the columns of rows
that it reads, and in `MAKES` what it gives a loss. All are sets of names in the method's module.
"""

from __future__ import annotations

from typing import Any

EMBEDDING_WIDTH = 256
NODE_COLUMNS = {
    "agents": "name of the agent, which is its role",
    "owners": "name of the agent whose weights wrote the node",
    "problems": "number of its problem in the training split",
    "parents": "index of its parent within the group; -1 for the root",
    "depths": "depth; 1 for a child of the root",
    "turns": "its turn within its episode; 1 for the first",
    "pass_rates": "share of right first attempts at its problem, at the last visit before",  # nosec B105
    "scores": "raw score, before shaping and penalties; 1 is right",
    "lengths": "output tokens",
    "limits": "most output tokens that its agent may write",
    "prompts": "prompt ids",
    "tokens": "output ids",
    "logprobs": "log-probability of each output token under the generator, in nats",
    "entropies": "entropy before each output token under the weights that will learn, in nats",
    "programs": "program, or another action; empty if there is none",
    "embeddings": f"{EMBEDDING_WIDTH} numbers (float32) of length 1 that represent its program; "
    "all 0 if there is none",
}
"""Columns of a group, one value for each node; `prompts`, `tokens`, `logprobs` and `entropies`
are arrays of their own, `embeddings` are (N, EMBEDDING_WIDTH)."""
REWARD_COLUMNS = {
    "rewards": "reward of all parts, after shaping",
    "group_rewards": "mean reward of the scored nodes of its tree",
    "group_sizes": "number of scored nodes of its tree",
}
"""Numbers of a node that its rewards give; an advantage has them without naming them."""
ROW_COLUMNS = frozenset(
    {"problems", "depths", "turns", "pass_rates", "scores", "lengths", "limits", *REWARD_COLUMNS}
)
"""Those that are a number: a loss or a composer may need them of each row."""
LOSS_TENSORS = {
    "entropies": "entropy of the learner's distribution before each token, in nats, under the "
    "weights at the start of the update",
    "reference": "log-probabilities under the agent's starting weights",
    "demonstrations": "which sequences the policy is shown and did not sample",
}
"""What a learner computes for a loss beyond what every loss has."""


def names_of(source: Any, attribute: str) -> frozenset[str]:
    """Returns the names that a module lists in `NEEDS` or `MAKES`; none if it has no such list.

    Raises:
        ValueError: it is no set of names.
    """
    names = getattr(source, attribute, frozenset())
    if not isinstance(names, (set, frozenset)) or not all(isinstance(n, str) for n in names):
        raise ValueError(f"{attribute} is {names!r:.80}, not a set of names of columns")
    return frozenset(names)
