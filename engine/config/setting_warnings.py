"""Warnings about settings that run, but do less than they say.

Invariant: a warning never refuses a run. Form, REST and command line show the same list before a
run starts, and the engine writes it to the run's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from engine.config.judge import judge_in_use
from engine.config.method_needs import unread
from engine.config.misfits import misfits

if TYPE_CHECKING:
    from engine.config.schema import RunConfig


class SettingWarning(BaseModel):
    """One warning: the setting to change, its value, and why with the remedy."""

    model_config = ConfigDict(frozen=True)

    path: str
    value: int | float | str | bool
    reason: str

    def __str__(self) -> str:
        return f"{self.path} = {self.value}: {self.reason}"


def setting_warnings(config: RunConfig) -> list[SettingWarning]:
    """Returns the warnings of a run's settings, in no particular order of importance."""
    of_methods = [one for one in (*misfits(config), *unread(config)) if not one.refused]
    return [
        *_never_clipped(config),
        *_unused_judge(config),
        *_uncorrected(config),
        *(SettingWarning(path=m.path, value=m.value, reason=m.reason) for m in of_methods),
    ]


def _uncorrected(config: RunConfig) -> Iterator[SettingWarning]:
    """Yields a warning if answers of older weights are learned from as if they were the learner's:
    its log pi_old is of the start of an update, so no ratio of the loss corrects for them."""
    plan = config.training
    for name, given in (("overlap", plan.overlap), ("extra_trees", plan.extra_trees)):
        if given and not config.loss.importance_correction:
            yield SettingWarning(
                path="loss.importance_correction",
                value=False,
                reason=f"with training.{name}, answers of older weights are learned from as if the "
                "current ones had written them; set it to true",
            )


def _unused_judge(config: RunConfig) -> Iterator[SettingWarning]:
    """Yields a warning if a judge is named and grades nothing."""
    if config.judge.model and not judge_in_use(config):
        yield SettingWarning(
            path="judge.model",
            value=config.judge.model,
            reason="it grades nothing; set credit.judge.weight, or leave it out",
        )


def _never_clipped(config: RunConfig) -> Iterator[SettingWarning]:
    """Yields a warning if every ratio of policies is 1.

    The learner takes log pi_old at the start of an update (docs/algorithm.md, section 7). With one
    minibatch the update has one optimizer step, whose weights are still the old ones: whatever the
    clip range is, and however old the rows are, nothing is clipped.
    """
    loss, minibatches = config.loss, config.training.minibatches
    if minibatches == 1 and loss.clips:
        yield SettingWarning(
            path="training.minibatches",
            value=minibatches,
            reason=f"loss.policy = {loss.policy} clips ratios of policies, but with one optimizer "
            "step per batch every ratio is 1: nothing is ever clipped, and the loss is REINFORCE's "
            "with these advantages; set it to 2 or more, or leave it if that is what you want",
        )
