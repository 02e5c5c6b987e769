"""A GRPO step with LoRA adapters over a pretrained model, ours and TRL's, in one process. Imported
only where TRL is installed."""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig as PeftLoraConfig

from benchmarks.conditions import CLOCKS
from benchmarks.trl_peer import StepTimes, TimedTrainer, bare_settings
from engine.config.schema import RunConfig, parse_config
from engine.policy.host import PolicyHost
from engine.policy.learner.rows import TrainingRow
from engine.policy.models.load import load_policy
from engine.resources.small_machine import multiplies_bfloat16

RANK, ALPHA, RATE = 16, 32.0, 1e-6


def steps_of_both(
    path: str, statements: Sequence[str], children: int, arguments: argparse.Namespace
) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns (ratios, figures) of steps without rewards; the first step of each is not counted.

    Raises:
        RuntimeError: two ways do not do the same work.
    """
    clock = CLOCKS[arguments.clock]
    default = "bfloat16" if multiplies_bfloat16() else "float32"
    ways: dict[str, Callable[[], list[dict[str, float]]]] = {
        "": lambda: _our_steps(
            run_config(path, arguments, default, "auto"), statements, children, clock
        ),
        "trl_": lambda: _trl_steps(path, statements, children, arguments, "float32"),
    }
    if default == "bfloat16":
        ways["float32_"] = lambda: _our_steps(
            run_config(path, arguments, "float32", "float32"), statements, children, clock
        )
        ways["trl_bfloat16_"] = lambda: _trl_steps(
            path, statements, children, arguments, "bfloat16"
        )
    figures: dict[str, Any] = {"learner_dtype": default}
    seconds: dict[str, float] = {}
    for prefix, way in ways.items():
        steps = way()[1:]
        gc.collect()
        figures[f"{prefix}tokens_per_answer"] = statistics.mean(s["tokens"] for s in steps)
        for part in ("generate", "learn"):
            figures[f"{prefix}{part}_s"] = round(statistics.median(s[part] for s in steps), 2)
        seconds[prefix] = statistics.median(s["generate"] + s["learn"] for s in steps)
    mine, other = figures["tokens_per_answer"], figures["trl_tokens_per_answer"]
    if abs(mine - other) > 0.1 * other:
        raise RuntimeError(f"not the same work: {mine:.1f} tokens per answer, TRL {other:.1f}")
    ratios = {
        "vs_trl": round(seconds["trl_"] / seconds[""], 2),
        "vs_trl_update": round(figures["trl_learn_s"] / figures["learn_s"], 2),
    }
    if default == "bfloat16":
        ratios["vs_trl_float32"] = round(seconds["trl_"] / seconds["float32_"], 2)
        ratios["vs_trl_bfloat16"] = round(seconds["trl_bfloat16_"] / seconds[""], 2)
    return ratios, figures


def run_config(path: str, arguments: argparse.Namespace, dtype: str, weights: str) -> RunConfig:
    """Returns our settings: dtypes of the learner, and of the weights that generate."""
    agent = {
        "name": "pretrained",
        "model": path,
        "lora": {"rank": RANK, "alpha": ALPHA},
        "sampling": {"max_new_tokens": arguments.tokens},
        "generator": {"weights": weights},
        "optimizer": {"learning_rate": RATE, "schedule": "constant", "warmup_fraction": 0.0},
    }
    loss = {"policy": "ppo", "aggregation": "sequence_mean", "clip_low": 0.2, "clip_high": 0.2,
            "kl_coefficient": 0.0}  # fmt: skip
    compute = {"device": "cpu", "dtype": dtype, "threads_per_agent": arguments.threads}
    training = {"steps": arguments.steps + 1}
    return parse_config({"agents": [agent], "loss": loss, "compute": compute, "training": training})


def _our_steps(
    run: RunConfig, statements: Sequence[str], children: int, clock: Callable[[], float]
) -> list[dict[str, float]]:
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
    for _ in range(run.training.steps):
        started = clock()
        with policy.weights.current() as model:
            policy.generator.use(model, policy.version)
            answers = policy.generator.generate(prompts, sampling, policy.version)
        generated = clock()
        # Advantages of +1 and -1 within each group.
        rows = [
            TrainingRow(
                list(a.prompt_ids), list(a.output_ids), list(a.logprobs), 1.0 - 2 * (n % 2),
                policy.version,
            )
            for n, a in enumerate(answers)
        ]  # fmt: skip
        policy.learn(rows, 0.0)
        learned = clock()
        tokens = statistics.mean(len(a.output_ids) for a in answers)
        steps.append(
            {"generate": generated - started, "learn": learned - generated, "tokens": tokens}
        )
    return steps


def _trl_steps(
    path: str, statements: Sequence[str], children: int, arguments: argparse.Namespace, dtype: str
) -> list[dict[str, float]]:
    torch.set_num_threads(arguments.threads)
    loaded, noted = load_policy(path, "cpu", dtype), {}
    with tempfile.TemporaryDirectory() as directory:
        times = StepTimes(noted, CLOCKS[arguments.clock])
        rows = [{"prompt": [{"role": "user", "content": text}]} for text in statements]
        trainer = TimedTrainer(
            model=loaded.model,
            reward_funcs=lambda completions, **_: [float(n % 2) for n in range(len(completions))],
            args=bare_settings(
                directory,
                bfloat16=dtype == "bfloat16",
                max_steps=arguments.steps + 1,
                per_device_train_batch_size=len(statements) * children,
                num_generations=children,
                max_completion_length=arguments.tokens,
                temperature=1.0,
                beta=0.0,
                learning_rate=RATE,
            ),
            train_dataset=Dataset.from_list(rows * (arguments.steps + 1)),
            processing_class=loaded.tokenizer,
            callbacks=[times],
            peft_config=PeftLoraConfig(
                r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM"
            ),
        )
        trainer.noted, trainer.clock = noted, CLOCKS[arguments.clock]
        trainer.train()
    return times.steps
