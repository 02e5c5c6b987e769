"""TRL's GRPOTrainer with the settings of one of our runs, timed step by step, and the comparison of
its loss with ours. Imported only where TRL is installed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from engine.config.schema import RunConfig
from engine.environments.programs.prompts import root_prompt
from engine.losses.terms import Rows
from engine.losses.total import count_units, total_loss
from engine.policy.generators.torch_generator import TorchGenerator
from engine.policy.learner.forward import output_logprobs, pad_rows
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.load import load_policy
from engine.problems.extraction import extract_program
from engine.problems.source import load_problem_set
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verdict_cache import CachingVerifier

TOLERANCE = 1e-5
"""Tolerance of the loss, and of the gradient as a share of its norm."""


class TimedTrainer(GRPOTrainer):
    """Trainer that records its seconds of generation and rewards in every step."""

    clock = staticmethod(time.perf_counter)

    def _generate(self, prompts: list) -> Any:
        started = self.clock()
        generated = super()._generate(prompts)
        self.noted["generate"] = self.clock() - started
        return generated

    def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
        started = self.clock()
        rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self.noted["verify"] = self.clock() - started
        self.noted["tokens"] = sum(map(len, completion_ids_list)) / len(completion_ids_list)
        return rewards


class StepTimes(TrainerCallback):
    """Seconds between the ends of steps, with the trainer's own records."""

    def __init__(self, noted: dict[str, float], clock: Callable[[], float] = time.perf_counter):
        self.noted, self.clock = noted, clock
        self.steps: list[dict[str, float]] = []

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.before = self.clock()

    def on_step_end(self, args, state, control, **kwargs) -> None:
        now = self.clock()
        step = {**self.noted, "step": now - self.before, "sync": 0.0}
        step["learn"] = step["step"] - step["generate"] - step["verify"]
        self.steps.append(step)
        self.before = now


def bare_settings(directory: str, *, bfloat16: bool = False, **settings: Any) -> GRPOConfig:
    """Returns GRPO's settings on a CPU, with nothing that costs time besides the steps."""
    return GRPOConfig(
        output_dir=directory,
        use_cpu=True,
        bf16=bfloat16,
        gradient_checkpointing=False,
        report_to="none",
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        shuffle_dataset=False,
        loss_type="grpo",
        scale_rewards="group",
        lr_scheduler_type="constant",
        **settings,
    )


class Peer:
    """Trains the one agent of `run` with TRL."""

    def __init__(self, run: RunConfig):
        (agent,) = run.agents
        self.run, self.sampling = run, agent.sampling
        self.policy = load_policy(agent.model)
        count = run.training.steps * run.training.trees_per_step
        self.problems = load_problem_set(run.problems).numbered(range(count))
        self.noted: dict[str, float] = {}

    def train(self) -> list[dict[str, float]]:
        """Trains; returns seconds of every step and of its parts, and tokens per answer."""
        with Sandbox(self.run.sandbox) as sandbox, tempfile.TemporaryDirectory() as directory:
            self.verifier = CachingVerifier(sandbox)
            times = StepTimes(self.noted)
            trainer = self.trainer(directory, [times])
            self._check_prompts(trainer)
            trainer.train()
        return times.steps

    def trainer(self, directory: str, callbacks: list[TrainerCallback] | None = None) -> Any:
        """Returns a trainer with the run's settings, and nothing else that costs time in a step."""
        run, agent = self.run, self.run.agents[0]
        group = run.search.nodes_per_tree
        args = bare_settings(
            directory,
            max_steps=run.training.steps,
            per_device_train_batch_size=run.training.trees_per_step * group,
            num_generations=group,
            max_completion_length=self.sampling.max_new_tokens,
            temperature=self.sampling.temperature,
            beta=run.loss.kl_coefficient,
            epsilon=run.loss.clip_low,
            epsilon_high=run.loss.clip_high,
            learning_rate=agent.optimizer.learning_rate,
            adam_beta1=agent.optimizer.beta1,
            adam_beta2=agent.optimizer.beta2,
            weight_decay=agent.optimizer.weight_decay,
            max_grad_norm=agent.optimizer.max_gradient_norm,
        )
        rows = [
            {"prompt": root_prompt(problem), "number": number}
            for number, problem in enumerate(self.problems)
        ]
        trainer = TimedTrainer(
            model=self.policy.model,
            reward_funcs=self._rewards,
            args=args,
            train_dataset=Dataset.from_list(rows),
            processing_class=self.policy.tokenizer,
            callbacks=callbacks,
        )
        trainer.noted = self.noted
        return trainer

    def _rewards(self, completions: list, number: list[int], **_: object) -> list[float]:
        answers = [messages[-1]["content"] for messages in completions]
        problems = [self.problems[n] for n in number]
        pairs = [
            (problem, extract_program(answer, problem.entry_point))
            for problem, answer in zip(problems, answers, strict=True)
        ]
        return [float(verification.passed) for verification in self.verifier.verify(pairs)]

    def _check_prompts(self, trainer: Any) -> None:
        messages = [root_prompt(problem) for problem in self.problems]
        theirs = trainer._tokenize_prompts(messages)[0]
        ours = [
            self.policy.tokenizer.apply_chat_template(
                each, add_generation_prompt=True, return_dict=False
            )
            for each in messages
        ]
        self.noted["prompt_tokens"] = sum(map(len, ours)) / len(ours)
        if theirs != ours:
            raise RuntimeError("TRL has other prompt tokens")


def check_same_loss(run: RunConfig) -> tuple[float, float]:
    """Returns the difference of both losses on the same rows, and of both gradients.

    Raises:
        RuntimeError: they differ by more than `TOLERANCE`.
    """
    peer = Peer(run)
    model, pad_id = peer.policy.model, peer.policy.pad_id
    prompts = [
        peer.policy.tokenizer.apply_chat_template(
            root_prompt(problem), add_generation_prompt=True, return_dict=False
        )
        for problem in peer.problems[: run.training.trees_per_step]
    ]
    generator = TorchGenerator(model, peer.policy.end_ids, pad_id, seed=0)
    advantages = np.random.default_rng(0).normal(size=len(prompts)).tolist()
    rows = [
        TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, advantage, 0, g.temperature)
        for g, advantage in zip(
            generator.generate(prompts, peer.sampling, 0), advantages, strict=True
        )
    ]
    padded = pad_rows(rows, pad_id, "cpu")
    logprobs_NL, entropy_NL = output_logprobs(model, padded)
    noise_NL = 0.3 * torch.randn(logprobs_NL.shape, generator=torch.Generator().manual_seed(0))
    old_NL = logprobs_NL.detach() + noise_NL  # as of other weights: some ratios are clipped
    ours = total_loss(
        logprobs_NL,
        Rows(old_NL, padded.rollout_logprobs_NL, padded.advantages_NL, padded.mask_NL),
        count_units([padded.mask_NL], run.loss),
        run.loss,
        entropy_NL,
    )
    our_gradient = _gradient(model, ours.loss)
    width = padded.ids.shape[1] - padded.outputs_NL.shape[1]
    inputs = {
        "prompt_ids": padded.ids[:, :width],
        "prompt_mask": padded.attention[:, :width],
        "completion_ids": padded.outputs_NL,
        "completion_mask": padded.mask_NL,
        "advantages": padded.advantages_NL[:, 0],
        "old_per_token_logps": old_NL,
    }
    with tempfile.TemporaryDirectory() as directory:
        trainer = peer.trainer(directory)
        trainer.model.eval()  # no dropout; in eval no division by accumulated batches
        theirs = trainer._compute_loss(trainer.model, inputs)
    their_gradient = _gradient(trainer.model, theirs)
    one, other = ours.loss.item(), theirs.item()
    loss_gap = abs(one - other)
    gradient_gap = float((our_gradient - their_gradient).norm() / our_gradient.norm())
    if not (loss_gap < TOLERANCE and gradient_gap < TOLERANCE):
        raise RuntimeError(
            f"not the same loss: {one:.7f}, TRL {other:.7f}; gradients differ by "
            f"{gradient_gap:.2g} of their norm"
        )
    return loss_gap, gradient_gap


def _gradient(model: torch.nn.Module, loss: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    model.zero_grad()
    return gradient.clone()
