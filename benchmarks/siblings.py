"""Generation of sibling answers, which share one prompt, by the torch generator.

A prompt of 512 tokens and 8 children of 32 tokens each, by a Llama of 4 layers of width 256 with
random weights, in three ways that take turns: all children at once, the prompt run once
(`siblings`); one child after the other, each with its prompt (`one_by_one`); and as one plain batch
of 8 rows, each with its prompt, in the cache of transformers (`batch`). All three draw the same
random numbers, and must produce the same tokens with the same log-probabilities. In addition
`transformers` is its own `generate` with a batch of 8 rows, which draws other numbers: it must
agree with ours on the likeliest tokens. Seconds are CPU time, on one thread, so that other load has
little effect; a ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks import at_least

SUMMARY = "eight children of one prompt, against one by one and against a plain batch"
GOALS = {"vs_one_by_one": at_least(4), "vs_batch": at_least(1.3)}
CHILDREN, TOKENS, VOCABULARY = 8, 32, 4096
TOLERANCE = 1e-4
"""Nats per token by which sums in another order may differ."""

SHARPNESS = 6
"""Factor that sharpens the random model: with 4,096 tokens of similar probability, sums in another
order would occasionally select the neighbour of the drawn token."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=7, help="rounds over all ways")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions; seconds are CPU time, for all children.

    Raises:
        RuntimeError: two ways produced different tokens or log-probabilities.
    """
    import torch
    import transformers

    torch.set_num_threads(1)
    model, prompt = _model(), _prompt(arguments.prompt)
    ways = _ways(model, prompt)
    _check_same(ways)
    _check_likeliest(model, prompt)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.rounds):
        for name, way in ways.items():
            started = time.process_time()
            way()
            seconds[name].append(time.process_time() - started)
    ours = seconds["siblings"]
    ratios = {
        f"vs_{name}": round(
            statistics.median(theirs / own for theirs, own in zip(taken, ours, strict=True)), 2
        )
        for name, taken in seconds.items()
        if name != "siblings"
    }
    figures: dict[str, Any] = {
        f"{name}_ms": round(1000 * statistics.median(taken), 1) for name, taken in seconds.items()
    }
    figures["tokens_per_second"] = round(CHILDREN * TOKENS / statistics.median(ours))
    figures["prompt_tokens"] = len(prompt)
    figures["parameters"] = model.num_parameters()
    figures["same_tokens"] = CHILDREN * TOKENS
    versions = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
    }
    return {"ratios": ratios, "figures": figures, "versions": versions}


def _model() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=1024,
        initializer_range=0.1, bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    model.lm_head.weight.mul_(SHARPNESS)
    return model


def _prompt(length: int) -> list[int]:
    import numpy as np

    return np.random.default_rng(0).integers(1, VOCABULARY, length).tolist()


def _ways(model: Any, prompt: list[int]) -> dict[str, Callable[[], list[tuple[Any, Any]]]]:
    """Returns the ways; each generates all children: (ids, log-probabilities) by child."""
    import torch

    from engine.config.agents import SamplingConfig
    from engine.policy.generators.counter_rng import row_seed
    from engine.policy.generators.torch_generator import TorchGenerator

    generator = TorchGenerator(model, [], pad_id=0, seed=0)
    sampling = SamplingConfig(max_new_tokens=TOKENS)
    seeds = [row_seed("child", child) for child in range(CHILDREN)]

    def write(some: list[int]) -> list[tuple[Any, Any]]:
        generator.reset_prefix_cache()
        written = generator.generate([prompt] * len(some), sampling, 0, some)
        return [(g.output_ids, g.logprobs) for g in written]

    def transformers() -> list[tuple[Any, Any]]:
        ids = torch.tensor([prompt] * CHILDREN)
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0,
            max_new_tokens=TOKENS, min_new_tokens=TOKENS, pad_token_id=0,
        )  # fmt: skip
        return [(row[len(prompt) :].tolist(), None) for row in out]

    return {
        "siblings": lambda: write(seeds),
        "one_by_one": lambda: [child for seed in seeds for child in write([seed])],
        "batch": lambda: _plain_batch(model, prompt, seeds),
        "transformers": transformers,
    }


def _plain_batch(model: Any, prompt: list[int], seeds: list[int]) -> list[tuple[Any, Any]]:
    """Generates a row for each child, as a plain batch without a shared prompt."""
    import numpy as np
    import torch

    from engine.policy.generators.counter_rng import uniforms
    from engine.policy.generators.sampling import Settings, draw

    numbers = uniforms(np.array(seeds), np.zeros(len(seeds), np.int64), TOKENS)
    plain = Settings(None, None, None, None)
    ids, cache, written = torch.tensor([prompt] * len(seeds)), None, []
    with torch.inference_mode():
        for index in range(TOKENS):
            out = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache = out.past_key_values
            tokens, logprobs = draw(out.logits[:, -1], plain, torch.from_numpy(numbers[:, index]))
            written.append((tokens, logprobs))
            ids = tokens[:, None]
    tokens, logprobs = (torch.stack(each, dim=1).tolist() for each in zip(*written, strict=True))
    return list(zip(tokens, logprobs, strict=True))


def _check_same(ways: dict[str, Callable[[], list[tuple[Any, Any]]]]) -> None:
    expected = ways["siblings"]()
    for name in ("one_by_one", "batch"):
        for child, (ours, theirs) in enumerate(zip(expected, ways[name](), strict=True)):
            gap = max(abs(a - b) for a, b in zip(ours[1], theirs[1], strict=True))
            if ours[0] != theirs[0] or gap > TOLERANCE:
                raise RuntimeError(
                    f"{name}: child {child} is not what siblings wrote: {theirs[0]}, not {ours[0]}"
                    f" (log-probabilities differ by up to {gap:.2g} nats)"
                )


def _check_likeliest(model: Any, prompt: list[int]) -> None:
    import torch

    from engine.config.agents import SamplingConfig
    from engine.policy.generators.torch_generator import TorchGenerator

    greedy = SamplingConfig(max_new_tokens=TOKENS, top_k=1)
    (ours,) = TorchGenerator(model, [], pad_id=0, seed=0).generate([prompt], greedy, 0)
    ids = torch.tensor([prompt])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=TOKENS,
        pad_token_id=0,
    )  # fmt: skip
    theirs = out[0, len(prompt) :].tolist()
    if ours.output_ids != theirs:
        raise RuntimeError(f"transformers finds {theirs}, we {ours.output_ids}")
