"""Generation and learning with a pretrained model on a CPU, against transformers and TRL.

The model is SmolLM2-135M-Instruct (vocabulary 49,152), installed by `python -m engine models add
smollm2`, or the one of `--model`. Generation: 8 sequences are the children of one prompt, 32 those
of four, at temperature 1, all of the same number of tokens. Ours is the torch generator with
`generator.weights = auto`; transformers' is `generate` with left padding and its dynamic cache.
Both have the same threads and take turns. `vs_transformers_N` is tokens per second over those of
`generate` in float32; `same_dtype_N` is ours in float32 over the same; `vs_bfloat16_N` is ours
over `generate` in bfloat16, which is fast only on a CPU that multiplies it.

Learning: the time of a GRPO step without its rewards, generation and one update of LoRA adapters
(rank 16, all linear layers), of TRL's GRPOTrainer over ours, with the same statements, 4 of them
with 8 answers each. `vs_trl` compares the defaults: ours in bfloat16 where the CPU multiplies it,
TRL's in the model's float32; `vs_trl_update` is that of the update alone. Where the default is
bfloat16, `vs_trl_float32` and `vs_trl_bfloat16` have both in the same one.

`--clock cpu` compares seconds of the process on its cores, to be taken with one thread: other work
on the machine then changes the ratios little, and no more than by what it takes of the caches.

Guards: in float32 our greedy tokens are those of `generate`; the recorded log-probabilities in
float32 are the learner's within 1e-4 nats, and of the copy in another precision within 0.1 on the
mean; with TRL, on the same statements, the tokens of an answer agree within 10 % (its chat
template makes its prompts; token by token they are not compared).
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import PeerMissing, at_least
from benchmarks.conditions import CLOCKS

SUMMARY = "a pretrained model on a CPU, against transformers' generate and TRL with LoRA"
GOALS = {
    "vs_transformers_8": at_least(2),
    "vs_transformers_32": at_least(2),
    "vs_trl": at_least(2),
}
CHILDREN, GROUPS = 8, 4
EXACT, NEAR = 1e-4, 0.1
"""Nats by which log-probabilities may differ from the learner's: for every token in the learner's
own precision, and on the mean in another."""
STATEMENTS = (
    "Write a Python function that returns the sum of the even numbers of a list.",
    "Write a Python function that says whether a word is a palindrome.",
    "Write a Python function that counts the vowels of a text.",
    "Write a Python function that returns the largest of three numbers, and test it.",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", help="directory of a model (default: the installed smollm2)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--rounds", type=int, default=3, help="rounds over all ways")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch that each has")
    parser.add_argument("--steps", type=int, default=3, help="steps of learning; 0: none")
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall",
                        help="cpu: seconds of the process, where it is not idle")  # fmt: skip


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions.

    Raises:
        PeerMissing: the model or TRL is not installed.
        RuntimeError: two ways do not do the same work.
    """
    model = _model_path(arguments.model)
    if arguments.steps:
        _require_trl()
    import torch
    import transformers

    torch.set_num_threads(arguments.threads)
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"threads": arguments.threads, "tokens": arguments.tokens}
    for sequences in (CHILDREN, CHILDREN * GROUPS):
        found, numbers = _generation(model, sequences, arguments)
        ratios |= {f"{name}_{sequences}": value for name, value in found.items()}
        figures |= {f"{name}_{sequences}": value for name, value in numbers.items()}
    versions = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
    }
    figures["peak_generation_mib"] = _peak()
    if arguments.steps:
        import trl

        from benchmarks.pretrained_learning import steps_of_both

        found, numbers = steps_of_both(model, STATEMENTS, CHILDREN, arguments)
        ratios, figures = ratios | found, figures | numbers
        figures["peak_mib"] = _peak()
        versions["trl"] = trl.__version__
    return {"ratios": ratios, "figures": figures, "versions": versions}


def _model_path(given: str | None) -> str:
    if given:
        return str(Path(given).absolute())
    from engine.config.pretrained import installed_directory, is_installed, pretrained_model

    directory = installed_directory(pretrained_model("smollm2"))
    if not is_installed(directory):
        raise PeerMissing(
            f"smollm2 is not installed at {directory}; python -m engine models add smollm2"
        )
    return str(directory)


def _require_trl() -> None:
    try:
        import peft  # noqa: F401
        import trl  # noqa: F401
    except ImportError:
        raise PeerMissing(
            "trl or peft is not installed; pip install -c constraints.txt '.[bench,lora]'"
        ) from None


def _generation(
    path: str, sequences: int, arguments: argparse.Namespace
) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns (ratios, figures) of generating that many sequences."""
    import torch

    from engine.config.agents import DecodingWeights
    from engine.policy.generators.replica import Replica, resolve
    from engine.policy.generators.torch_generator import TorchGenerator
    from engine.policy.models.load import load_policy

    loaded = load_policy(path)
    model, half = loaded.model.requires_grad_(False), load_policy(path, "cpu", "bfloat16").model
    prompts = [
        loaded.tokenizer.apply_chat_template(
            [{"role": "user", "content": statement}], add_generation_prompt=True, return_dict=False
        )
        for statement in STATEMENTS[: sequences // CHILDREN]
        for _ in range(CHILDREN)
    ]
    # Without ends, so that all answers have the same length.
    exact = TorchGenerator(model, [], loaded.pad_id, 0)
    quick = TorchGenerator(model, [], loaded.pad_id, 0, Replica(DecodingWeights.AUTO))
    quick.use(model, 0)
    _check_likeliest(exact, model, prompts[0], arguments.tokens)
    gaps = {}
    for name, generator, most in (("float32", exact, EXACT), ("quick", quick, NEAR)):
        gaps[name] = _gap(generator, model, prompts, arguments.tokens)
        if gaps[name][name == "float32"] > most:
            raise RuntimeError(f"{name}: log-probabilities differ by {gaps[name]} nats")
    ways: dict[str, Callable[[], Any]] = {
        "quick": lambda: _written(quick, prompts, arguments.tokens),
        "float32": lambda: _written(exact, prompts, arguments.tokens),
        "transformers": lambda: _generated(model, prompts, arguments.tokens),
        "bfloat16": lambda: _generated(half, prompts, arguments.tokens),
    }
    clock = CLOCKS[arguments.clock]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for _ in range(arguments.rounds):
            for name, way in ways.items():
                started = clock()
                way()
                seconds[name].append(clock() - started)

    def ratio(theirs: str, ours: str) -> float:
        pairs = zip(seconds[theirs], seconds[ours], strict=True)
        return round(statistics.median(their / our for their, our in pairs), 2)

    figures: dict[str, Any] = {
        f"{name}_tokens_per_second": round(
            sequences * arguments.tokens / statistics.median(taken), 1
        )
        for name, taken in seconds.items()
    }
    figures |= {f"{name}_mean_gap_nats": mean for name, (mean, _) in gaps.items()}
    figures["weights"] = str(resolve(DecodingWeights.AUTO))
    ratios = {
        "vs_transformers": ratio("transformers", "quick"),
        "same_dtype": ratio("transformers", "float32"),
        "vs_bfloat16": ratio("bfloat16", "quick"),
    }
    return ratios, figures


def _written(generator: Any, prompts: list[list[int]], tokens: int) -> list[Any]:
    from engine.config.agents import SamplingConfig

    generator.reset_prefix_cache()
    generator.use(generator._replica._source if generator._replica else generator.model, 0)
    return generator.generate(prompts, SamplingConfig(max_new_tokens=tokens), 0)


def _generated(model: Any, prompts: list[list[int]], tokens: int, **options: Any) -> Any:
    import torch

    from engine.policy.batching import left_pad

    ids, mask = left_pad(prompts, 0, "cpu")
    settings = {"do_sample": True, "top_k": 0} | options
    with torch.inference_mode():
        return model.generate(
            ids, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens,
            pad_token_id=0, eos_token_id=None, **settings,
        )  # fmt: skip


def _check_likeliest(generator: Any, model: Any, prompt: list[int], tokens: int) -> None:
    from engine.config.agents import SamplingConfig

    greedy = SamplingConfig(max_new_tokens=tokens, top_k=1)
    (ours,) = generator.generate([prompt], greedy, 0)
    out = _generated(model, [prompt], tokens, do_sample=False, top_k=None)
    theirs = out[0, len(prompt) :].tolist()
    if ours.output_ids != theirs:
        raise RuntimeError(f"transformers generates {theirs}, we {ours.output_ids}")


def _gap(generator: Any, model: Any, prompts: list[list[int]], tokens: int) -> tuple[float, float]:
    """Returns (mean, most) nats between recorded log-probabilities and the learner's."""
    import torch

    from engine.policy.learner.forward import output_logprobs, pad_rows
    from engine.policy.learner.rows import TrainingRow

    answers = _written(generator, prompts[::CHILDREN], tokens)
    rows = [TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, 0.0, 0) for g in answers]
    with torch.no_grad():
        learned, _ = output_logprobs(model, pad_rows(rows, 0, "cpu"), at_once=2**22)
    gap = (learned - torch.tensor([g.logprobs for g in answers])).abs()
    return round(float(gap.mean()), 7), round(float(gap.max()), 7)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
