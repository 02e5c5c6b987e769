"""A GRPO step with LoRA adapters over a pretrained model, ours and TRL's, in one process. Imported
only where TRL is installed."""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig as PeftLoraConfig
from trl import GRPOConfig

from benchmarks.trl_peer import StepTimes, TimedTrainer
from engine.config.schema import RunConfig, parse_config
from engine.policy.host import PolicyHost
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.load import load_policy

RANK, ALPHA, RATE = 16, 32.0, 1e-6


def steps_of_both(
    path: str, statements: Sequence[str], children: int, arguments: argparse.Namespace
) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns (ratios, figures) of steps without rewards; the first step of each is not counted.

    Raises:
        RuntimeError: the two do not do the same work.
    """
    ours = _our_steps(path, statements, children, arguments)[1:]
    gc.collect()
    theirs = _trl_steps(path, statements, children, arguments)[1:]
    mine, other = (statistics.mean(s["tokens"] for s in steps) for steps in (ours, theirs))
    if abs(mine - other) > 0.1 * other:
        raise RuntimeError(f"not the same work: {mine:.1f} tokens per answer, TRL {other:.1f}")
    figures: dict[str, Any] = {"tokens_per_answer": mine, "trl_tokens_per_answer": other}
    for prefix, steps in (("", ours), ("trl_", theirs)):
        for part in ("generate", "learn"):
            figures[f"{prefix}{part}_s"] = round(statistics.median(s[part] for s in steps), 2)
    step, peer = (
        statistics.median(s["generate"] + s["learn"] for s in steps) for steps in (ours, theirs)
    )
    ratios = {
        "vs_trl": round(peer / step, 2),
        "vs_trl_update": round(figures["trl_learn_s"] / figures["learn_s"], 2),
    }
    return ratios, figures


def run_config(path: str, arguments: argparse.Namespace) -> RunConfig:
    """Returns our settings, from which TRL's are derived."""
    agent = {
        "name": "pretrained",
        "model": path,
        "lora": {"rank": RANK, "alpha": ALPHA},
        "sampling": {"max_new_tokens": arguments.tokens},
        "generator": {"weights": "auto"},
        "optimizer": {"learning_rate": RATE, "schedule": "constant", "warmup_fraction": 0.0},
    }
    loss = {"policy": "ppo", "aggregation": "sequence_mean", "clip_low": 0.2, "clip_high": 0.2,
            "kl_coefficient": 0.0}  # fmt: skip
    compute = {"device": "cpu", "threads_per_agent": arguments.threads}
    return parse_config({"agents": [agent], "loss": loss, "compute": compute})


def _our_steps(
    path: str, statements: Sequence[str], children: int, arguments: argparse.Namespace
) -> list[dict[str, float]]:
    run = run_config(path, arguments)
    host = PolicyHost([run.agents], run, [0])
    policy = host.policies["pretrained"]
    tokenizer, sampling = policy.loaded.tokenizer, run.agents[0].sampling
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": statement}], add_generation_prompt=True, return_dict=False
        )
        for statement in statements
        for _ in range(children)
    ]
    steps = []
    for _ in range(arguments.steps + 1):
        started = time.perf_counter()
        with policy.weights.current() as model:
            policy.generator.use(model, policy.version)
            answers = policy.generator.generate(prompts, sampling, policy.version)
        generated = time.perf_counter()
        # Advantages of +1 and -1 within each group.
        rows = [
            TrainingRow(
                list(a.prompt_ids), list(a.output_ids), list(a.logprobs), 1.0 - 2 * (n % 2),
                policy.version,
            )
            for n, a in enumerate(answers)
        ]  # fmt: skip
        policy.learn(rows, 0.0)
        learned = time.perf_counter()
        tokens = statistics.mean(len(a.output_ids) for a in answers)
        steps.append(
            {"generate": generated - started, "learn": learned - generated, "tokens": tokens}
        )
    return steps


def _trl_steps(
    path: str, statements: Sequence[str], children: int, arguments: argparse.Namespace
) -> list[dict[str, float]]:
    torch.set_num_threads(arguments.threads)
    loaded, noted = load_policy(path), {}
    with tempfile.TemporaryDirectory() as directory:
        times = StepTimes(noted)
        rows = [{"prompt": [{"role": "user", "content": text}]} for text in statements]
        trainer = TimedTrainer(
            model=loaded.model,
            reward_funcs=lambda completions, **_: [float(n % 2) for n in range(len(completions))],
            args=GRPOConfig(
                output_dir=directory,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                logging_strategy="no",
                save_strategy="no",
                disable_tqdm=True,
                dataloader_pin_memory=False,
                max_steps=arguments.steps + 1,
                per_device_train_batch_size=len(statements) * children,
                num_generations=children,
                max_completion_length=arguments.tokens,
                shuffle_dataset=False,
                temperature=1.0,
                loss_type="grpo",
                scale_rewards="group",
                beta=0.0,
                learning_rate=RATE,
                lr_scheduler_type="constant",
            ),
            train_dataset=Dataset.from_list(rows * (arguments.steps + 1)),
            processing_class=loaded.tokenizer,
            callbacks=[times],
            peft_config=PeftLoraConfig(
                r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM"
            ),
        )
        trainer.noted = noted
        trainer.train()
    return times.steps
