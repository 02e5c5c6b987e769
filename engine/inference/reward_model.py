"""Reward model: a value head on a policy that predicts the probability that a program is right.

Source: MARS²-T+ (arXiv 2602.07848; docs/algorithm.md, section 8), outcome reward model trained with
binary cross-entropy (Cobbe et al. 2021, arXiv 2110.14168). p(right) = sigmoid(w · h + b), with h
the last layer's state at the last token of the conversation (statement, program).

A directory holds the policy in Hugging Face layout (weights changed by the training),
`value_head.safetensors` and `reward_model.json`; nothing in it is ever unpickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from engine.config.heads import Head, Reads
from engine.environments.programs.prompts import statement_prompt
from engine.inference.classification import area_under_roc, binary_cross_entropy
from engine.inference.reward_data import (
    ABOUT_FILE,
    HEAD_FILE,
    VERSION,
    Example,
    check_reward_model,
)
from engine.policy.batching import length_buckets
from engine.policy.models.conversations import conversation_ids
from engine.policy.models.finite import refuse_stored
from engine.policy.models.heads import head_outputs, last_states, new_head
from engine.policy.models.load import LoadedModel, ModelError, load_policy

BATCH_TOKENS = 8192
MAX_TOKENS = 4096  # a longer conversation keeps its end, which holds the program
HEAD = Head(Reads.LAST)

Pair = tuple[str, str]
"""(statement, program)"""


@dataclass(frozen=True)
class TrainingPlan:
    """Hyperparameters of a reward model's training."""

    epochs: int = 12
    """Most epochs; see `patience`."""
    patience: int = 2
    """Epochs without a lower cross-entropy on the stopping examples, after which training ends."""
    learning_rate: float = 3e-4
    batch: int = 32
    weight_decay: float = 0.01
    seed: int = 0


@dataclass(frozen=True)
class Quality:
    """Quality of a reward model on programs of held-out problems."""

    programs: int
    right: int
    auc: float
    """Area under the ROC curve: probability that a right program scores above a wrong one."""
    bce: float
    """Mean binary cross-entropy, in nats."""
    constant_bce: float
    """The same for the best constant: the share of right programs in the training examples."""


class RewardModel:
    """Scores programs; `policy.model` and `head` share one device.

    `clock` is the local time that its chat template writes in every conversation (default: that of
    its making): two scores of one program are equal, whenever they are computed.
    """

    def __init__(self, policy: LoadedModel, head: nn.Linear, clock: str | None = None):
        self.policy = policy
        self.head = head
        self.clock = clock or datetime.now().isoformat()

    @classmethod
    def on(cls, policy: LoadedModel, clock: str | None = None) -> RewardModel:
        """Returns an untrained head on a policy: every program scores 0.5."""
        head = new_head(HEAD, policy.model)
        assert isinstance(head, nn.Linear)  # of one layer
        return cls(policy, head, clock)

    @classmethod
    def load(cls, directory: Path, device: str = "cpu", clock: str | None = None) -> RewardModel:
        """Loads a directory that `save` wrote.

        Raises:
            ModelError: a file is missing or broken; names it.
        """
        check_reward_model(directory)
        reward_model = cls.on(load_policy(str(directory), device), clock)
        file = directory / HEAD_FILE
        try:
            state = load_file(file)
            reward_model.head.load_state_dict(state)
        except (SafetensorError, OSError, RuntimeError, KeyError) as error:
            raise ModelError(f"{file}: {str(error).splitlines()[0]}; train it again") from None
        refuse_stored(state, file)
        return reward_model

    def save(self, directory: Path, about: dict[str, Any]) -> None:
        """Saves weights, tokenizer, head, and `about` (its origin and quality)."""
        directory.mkdir(parents=True, exist_ok=True)
        self.policy.model.save_pretrained(directory)
        self.policy.tokenizer.save_pretrained(directory)
        head = {name: value.contiguous().cpu() for name, value in self.head.state_dict().items()}
        save_file(head, directory / HEAD_FILE)
        text = json.dumps({"version": VERSION, **about}, indent=1)
        (directory / ABOUT_FILE).write_text(text + "\n")

    @torch.inference_mode()
    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Returns p(right) of each program for its statement, in order."""
        rows = [self.encode(pair) for pair in pairs]
        scores = [0.0] * len(rows)
        self.policy.model.eval()
        for group in length_buckets([len(row) for row in rows], BATCH_TOKENS):
            logits_N = self.logits([rows[index] for index in group])
            for index, score in zip(group, torch.sigmoid(logits_N).tolist(), strict=True):
                scores[index] = score
        return scores

    def encode(self, pair: Pair) -> list[int]:
        """Returns the token ids of the conversation: statement as prompt, program as answer."""
        statement, program = pair
        conversation = [
            *statement_prompt(statement),
            {"role": "assistant", "content": program.rstrip("\n")},
        ]
        ids = conversation_ids(self.policy.tokenizer, conversation, now=self.clock)
        return ids[-MAX_TOKENS:]

    def logits(self, rows: Sequence[list[int]]) -> Tensor:
        """Returns logits_N, one per row of ids."""
        return head_outputs(self.head, last_states(self.policy.model, rows, self.policy.pad_id))


def train(
    reward_model: RewardModel,
    examples: Sequence[Example],
    stopping: Sequence[Example],
    plan: TrainingPlan,
    report: Callable[[str], None] = lambda text: None,
) -> list[float]:
    """Minimises the binary cross-entropy on the examples; trains both head and policy.

    The head's bias starts at the logit of the share of right programs; its learning rate is ten
    times the policy's. Keeps the weights of the epoch with the lowest cross-entropy on `stopping`;
    returns that cross-entropy after each epoch.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    share = sum(example.right for example in examples) / len(examples)
    nn.init.constant_(reward_model.head.bias, math.log(share / (1 - share)))
    model = reward_model.policy.model
    optimizer, schedule = _optimizer(reward_model, plan, math.ceil(len(examples) / plan.batch))
    losses: list[float] = []
    best: dict[str, Tensor] = {}
    trained_modules = nn.ModuleList([model, reward_model.head])
    for epoch, batches in enumerate(_epochs(reward_model, examples, plan), start=1):
        model.train()
        for rows, labels_N in batches:
            loss = _step(reward_model, rows, labels_N, optimizer)
            schedule.step()
            report(f"epoch {epoch} of at most {plan.epochs}, loss {loss:.3f}")
        losses.append(_cross_entropy(reward_model, stopping))
        if losses[-1] == min(losses):
            best = {
                name: value.cpu().clone() for name, value in trained_modules.state_dict().items()
            }
        if epoch - losses.index(min(losses)) > plan.patience:
            break
    trained_modules.load_state_dict(best)
    model.eval()
    return losses


def _optimizer(
    reward_model: RewardModel, plan: TrainingPlan, steps_per_epoch: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LambdaLR]:
    """Returns AdamW and its schedule: up over the first 20th of all steps, and down to 0."""
    model = reward_model.policy.model
    groups = [
        {"params": list(model.base_model.parameters()), "lr": plan.learning_rate},
        {"params": list(reward_model.head.parameters()), "lr": 10 * plan.learning_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=plan.weight_decay)
    steps = plan.epochs * steps_per_epoch
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: max(0.0, 1 - step / steps) * min(1.0, (step + 1) / (0.05 * steps))
    )
    return optimizer, schedule


def _step(
    reward_model: RewardModel,
    rows: Sequence[list[int]],
    labels_N: list[float],
    optimizer: torch.optim.Optimizer,
) -> float:
    logits_N = reward_model.logits(rows)
    loss = nn.functional.binary_cross_entropy_with_logits(
        logits_N, torch.tensor(labels_N, device=logits_N.device)
    )
    if not torch.isfinite(loss):
        raise FloatingPointError(f"the loss is {loss.item()}; lower --learning-rate")
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return loss.item()


def _cross_entropy(reward_model: RewardModel, examples: Sequence[Example]) -> float:
    scores = reward_model.score([(e.statement, e.program) for e in examples])
    return binary_cross_entropy([e.right for e in examples], scores)


Batch = tuple[list[list[int]], list[float]]
"""Rows of token ids, and their labels: 1.0 for a right program."""


def _epochs(
    reward_model: RewardModel, examples: Sequence[Example], plan: TrainingPlan
) -> Iterator[list[Batch]]:
    rows = [reward_model.encode((e.statement, e.program)) for e in examples]
    labels = [float(example.right) for example in examples]
    rng = np.random.default_rng(plan.seed)
    for _ in range(plan.epochs):
        order = rng.permutation(len(rows))
        parts = [order[start : start + plan.batch] for start in range(0, len(rows), plan.batch)]
        yield [([rows[i] for i in part], [labels[i] for i in part]) for part in parts]


def quality(
    reward_model: RewardModel, training: Sequence[Example], held_out: Sequence[Example]
) -> Quality:
    """Returns the quality on held-out examples, with that of the best constant for comparison."""
    labels = [example.right for example in held_out]
    scores = reward_model.score([(e.statement, e.program) for e in held_out])
    constant = sum(example.right for example in training) / len(training)
    return Quality(
        programs=len(labels),
        right=sum(labels),
        auc=area_under_roc(labels, scores),
        bce=binary_cross_entropy(labels, scores),
        constant_bce=binary_cross_entropy(labels, [constant] * len(labels)),
    )


def about(plan: TrainingPlan, quality: Quality, **source: Any) -> dict[str, Any]:
    """Returns the contents of `reward_model.json`."""
    return {"training": asdict(plan), "held_out": asdict(quality), **source}
