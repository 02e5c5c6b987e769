"""Groups of TRL's `GRPOTrainer` as trees: the prompt is the problem, each completion a node.

    from grove.integrations.trl import follow

    trainer = GRPOTrainer(...)
    follow(trainer, project="Oaks")
    trainer.train()

Each step that generates becomes a step of the run's page, with one tree per group: all nodes are
children of the root, with the weighted reward as their score and TRL's advantage. What TRL offers
no public access to is read from `_logs` and `_calculate_rewards`, as of TRL 1.16; a trainer without
them is refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import trl
from accelerate.utils import gather_object
from transformers import TrainerCallback

import grove
from grove.integrations.transformers import GroveCallback
from webapp.client import tracking
from webapp.client.tracking.trees import AGENT, Node, Tree, named, record_step
from webapp.client.tracking.values import text_of

LONGEST = 20_000
"""Characters of a prompt or completion that are kept."""
_READ = ("_logs", "_calculate_rewards", "num_generations", "reward_weights")


class Unsupported(RuntimeError):
    """Raised for a trainer that does not keep its groups as TRL 1.16 does."""


@dataclass(frozen=True)
class Answer:
    """One completion of a group; a reward of None could not be computed."""

    text: str
    reward: float | None
    advantage: float
    tokens: int
    is_cut: bool


def follow(trainer: Any, **init: Any) -> GroveCallback:
    """Logs the trainer's numbers and its groups; `init` as of `grove.init`. If the trainer reports
    to W&B, and that is Grove (`grove.integrations.wandb`), its numbers are not logged twice.

    Raises:
        Unsupported: its version of TRL keeps groups elsewhere.
    """
    missing = [name for name in _READ if not hasattr(trainer, name)]
    if missing:
        raise Unsupported(
            f"TRL {trl.__version__}: {', '.join(missing)} is missing; install TRL 1.16"
        )
    callback = GroveCallback(**init)
    if not _reports_here(trainer):
        trainer.add_callback(callback)
    trainer.add_callback(_Groups(trainer, callback))
    return callback


def _reports_here(trainer: Any) -> bool:
    callbacks = getattr(getattr(trainer, "callback_handler", None), "callbacks", ())
    return any(getattr(one, "_wandb", None) is grove for one in callbacks)


class _Groups(TrainerCallback):
    """Records the groups of each step that generated some."""

    def __init__(self, trainer: Any, callback: GroveCallback):
        self._trainer, self._callback = trainer, callback
        self._lengths: list[int] = []
        """Tokens of each completion of the newest batch, of all processes."""
        self._began = self._step_began = time.monotonic()
        score = trainer._calculate_rewards

        def noting_lengths(
            inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
        ) -> Any:
            rewards = score(inputs, prompts, completions, completion_ids_list)
            lengths = gather_object([len(ids) for ids in completion_ids_list])
            self._lengths = lengths if trainer.model.training else []
            return rewards

        trainer._calculate_rewards = noting_lengths

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._began = time.monotonic()
        if run := self._run(state):
            run.emit("run.planned", {"steps": state.max_steps, "agents": [AGENT]})

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._step_began = time.monotonic()

    def _run(self, state: Any) -> tracking.Run | None:
        if not state.is_world_process_zero:
            return None
        return self._callback.run or tracking.run_or_none()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        lengths, self._lengths = self._lengths, []
        if lengths and (run := self._run(state)):
            groups = list(_groups(self._trainer, lengths))
            now = time.monotonic()
            record_groups(run, state.global_step, groups, now - self._step_began, now - self._began)


def _groups(trainer: Any, lengths: Sequence[int]) -> Iterator[tuple[str, list[Answer]]]:
    """Yields prompt and answers of each group of the newest batch."""
    logs, count = trainer._logs, len(lengths)
    newest = {name: list(logs[name])[-count:] for name in ("prompt", "completion", "advantages")}
    by_function = [list(values)[-count:] for values in logs["rewards"].values()]
    weights = trainer.reward_weights.tolist()
    longest = getattr(trainer, "max_completion_length", None) or math.inf
    answers = [
        Answer(
            _text(newest["completion"][index]),
            _weighted([values[index] for values in by_function], weights),
            _finite(newest["advantages"][index]),
            lengths[index],
            lengths[index] >= longest,
        )
        for index in range(count)
    ]
    for first in range(0, count, trainer.num_generations):
        yield _text(newest["prompt"][first]), answers[first : first + trainer.num_generations]


def record_groups(
    run: tracking.Run,
    step: int,
    groups: Sequence[tuple[str, Sequence[Answer]]],
    seconds: float,
    training_seconds: float,
) -> None:
    """Records the groups of one step as its trees: (prompt, answers) each."""
    grown = [
        Tree(text_of(prompt, LONGEST), [_node(answer) for answer in answers], named(prompt))
        for prompt, answers in groups
    ]
    record_step(run.emit, run.new_tree, step, grown, seconds, training_seconds)


def _node(answer: Answer) -> Node:
    text = text_of(answer.text, LONGEST)
    return Node(text, answer.reward, answer.advantage, answer.tokens, answer.is_cut)


def _weighted(rewards: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [
        reward * weight
        for reward, weight in zip(rewards, weights, strict=True)
        if reward is not None and math.isfinite(reward)
    ]
    return sum(known) if known else None


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _text(content: Any) -> str:
    """Returns a prompt or completion as text; of a conversation, message by message."""
    if isinstance(content, str):
        return content
    if len(content) == 1:
        return str(content[0].get("content", ""))
    return "\n\n".join(f"{one.get('role', '')}: {one.get('content', '')}" for one in content)
