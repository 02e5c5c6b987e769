"""Every tree's group with the reference solution in it (LUFFY, arXiv 2504.14945).

    A_v = r_v - mean of the rewards of all scored nodes of the tree and of the demonstration, whose
    reward is 1; the demonstration's own advantage is 1 - that mean
The authors have seven answers and one demonstration in a group. With `loss.policy = "mixed_policy"`
the demonstration is learned from off-policy, by a shaped probability. A tree of right answers alone
gives 0 to all of its rows.

Ours: the group is the whole tree, of all agents and depths, as for other methods; each policy that
wrote in it is shown the reference at its own first prompt, as one more child of the root. A tree
whose reference cannot be shown, which is counted with the reason, keeps its advantages. Trees that
the dynamic filter leaves out have no rows: a run with it warns that it does not learn where every
answer fails, and one with shaping or parts of rewards that a demonstration has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.config.method_needs import DEMONSTRATIONS
from engine.config.misfits import Misfit, filtered_trees, parts_in_use
from engine.config.schema import RunConfig
from engine.policy.learner.rows import TrainingRow
from engine.training.compose.composer import ComposeContext, Composition, Update

NEEDS = {"problems", "rewards", "group_rewards", "group_sizes"}
MAKES = {DEMONSTRATIONS}
ADVANTAGES = {"dr_grpo"}
_REWARD = 1.0
"""Of a demonstration, which passes every test."""


def misfits(config: RunConfig) -> Iterator[Misfit]:
    """Warns of rewards that a demonstration's is no measure of, and of the filter of the trees that
    it helps most."""
    why = "shows them a right answer, which helps most where every answer is wrong"
    yield from filtered_trees(config, "training.compose", why, refused=False)
    given = {f"credit.{name}.weight": one for name, one in parts_in_use(config).items()}
    if config.credit.shaping_gamma:
        given["credit.shaping_gamma"] = config.credit.shaping_gamma
    for path, value in given.items():
        reason = (
            "changes the rewards of answers, with which training.compose = luffy compares a "
            "demonstration, whose reward is 1; set it to 0"
        )
        yield Misfit(path, value, reason, refused=False)


def compose(rows: Sequence[TrainingRow], context: ComposeContext) -> Composition:
    """Returns one update from all rows, then the demonstrations of their trees: minibatches, which
    get every so manyth row, share these evenly."""
    first = {row.tree: row for row in reversed(rows)}
    trees = {row.tree: int(row.columns["problems"]) for row in rows}
    assert context.demonstrate is not None
    shown = context.demonstrate(context.owner, trees)
    own = [
        replace(row, advantage=row.columns["rewards"] - mixed_mean(row))
        if row.tree in shown.rows
        else row
        for row in rows
    ]
    demonstrations = [
        replace(row, advantage=_REWARD - mixed_mean(first[tree]))
        for tree, row in shown.rows.items()
    ]
    needed = context.config.loss.row_columns
    update = [
        replace(row, columns={name: row.columns[name] for name in needed})
        for row in (*own, *demonstrations)
    ]
    return Composition([Update(update)], unshown=shown.missing)


def mixed_mean(row: TrainingRow) -> float:
    """Returns the mean reward of a row's group with a demonstration in it."""
    nodes = row.columns["group_sizes"]
    return (row.columns["group_rewards"] * nodes + _REWARD) / (nodes + 1)
