"""What a run needs, what this machine has, and what of it does not fit.

Invariant: a run is refused only for what is certain to be missing: an estimate leaves out whatever
nothing is known of, and memory that others use now is not counted against it. Of a cluster that is
elsewhere (`compute.ray_address`, RAY_ADDRESS) only models and disk are looked at here; its cores
and GPUs are looked at when the run's actors are placed (`engine.training.cluster`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from engine.config import AgentConfig, RunConfig
from engine.generation import generator_gpus, uses_vllm
from engine.shapes import Shape, shape_of
from engine.sharing import actor_groups, rank_processes, weight_groups

GIB = 2**30
BATCH_PROMPT_TOKENS = 16384
"""Prompt tokens that the torch generator begins at once."""
GPU_QUERY_SECONDS = 20.0


@dataclass(frozen=True)
class Need:
    """One thing that the run needs."""

    what: str
    needs: str
    has: str
    fits: bool
    remedy: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    """GiB by what takes them."""


@dataclass(frozen=True)
class Machine:
    """What there is to run on."""

    cores: int
    memory: float
    """GiB."""
    gpus: tuple[float, ...]
    """GiB of each."""
    disk: float
    """GiB that are free where runs are written."""
    remote: bool = False
    """The run joins a cluster elsewhere."""


def this_machine(config: RunConfig, folder: Path) -> Machine:
    """What this machine has; `folder` is where the run is, or will be, written."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return Machine(
        cores=os.cpu_count() or 1,
        memory=psutil.virtual_memory().total / GIB,
        gpus=() if config.compute.device == "cpu" else _gpus(),
        disk=shutil.disk_usage(existing).free / GIB,
        remote=bool(config.compute.ray_address or os.environ.get("RAY_ADDRESS")),
    )


def needs_of(config: RunConfig, machine: Machine) -> list[Need]:
    """Everything that the run needs, what is missing too."""
    owners = [group[0] for group in weight_groups(config.agents).values()]
    found = [_model(agent) for agent in owners]
    on_gpus = config.compute.device == "cuda" or (
        config.compute.device == "auto" and machine.gpus and not config.compute.deterministic
    )
    if not machine.remote:
        found += _on_gpus(config, owners, machine) if on_gpus else _on_cpu(config, owners, machine)
    found.append(_disk(config, owners, machine))
    return found


def report(needs: Sequence[Need]) -> str:
    """One line per need; memory by what takes it."""
    lines = []
    for need in needs:
        lines.append(f"{'ok     ' if need.fits else 'MISSING'} {need.what}: needs {need.needs}, "
                     f"has {need.has}")  # fmt: skip
        if need.parts:
            parts = ", ".join(f"{name} {gib:.1f}" for name, gib in need.parts.items())
            lines.append(f"        GiB: {parts}")
        if need.remedy and not need.fits:
            lines.append(f"        {need.remedy}")
    return "\n".join(lines)


class HardwareError(ValueError):
    """The run cannot start here; the whole report."""

    def __init__(self, needs: Sequence[Need]):
        missing = sum(not need.fits for need in needs)
        super().__init__(f"{missing} of {len(needs)} needs are not met here:\n{report(needs)}")


def require(config: RunConfig, run_dir: Path) -> None:
    """Raises HardwareError where this machine is too small for a run of these settings. A model
    that is missing alone is told by who loads it."""
    needs = needs_of(config, this_machine(config, run_dir))
    if not all(need.fits for need in needs if not need.what.startswith("agents.")):
        raise HardwareError(needs)


def _model(agent: AgentConfig) -> Need:
    here = agent.model.startswith("starter:") or Path(agent.model).expanduser().is_dir()
    shape = shape_of(agent.model)
    size = f"{shape.parameters / 1e9:.2f}e9 parameters" if shape else "of unknown size"
    remedy = (
        f"download it and give its directory: agents.{agent.name}.model=/models/"
        f"{Path(agent.model).name}"
    )
    has = "it" if here else "no such directory"
    return Need(f"agents.{agent.name}.model", f"{agent.model} ({size})", has, here, remedy)


def _on_gpus(config: RunConfig, owners: list[AgentConfig], machine: Machine) -> Iterator[Need]:
    writing = sum(map(len, _writers(config)))
    own = sum(
        generator_gpus(group) * len(places)
        for group, places in zip(_groups(config), _writers(config), strict=True)
    )
    ranks = rank_processes(config.agents)
    # Whole GPUs for ranks and for vLLM's own; the others share what is left, one at least.
    least = ranks + own + (1 if writing else 0)
    cores = config.compute.threads_per_agent * (writing + ranks)
    has = f"{len(machine.gpus)} of {min(machine.gpus):.0f} GiB" if machine.gpus else "none"
    yield Need(
        "GPUs", f"{least} to {writing + ranks + own}", has, len(machine.gpus) >= least,
        "join a cluster that has them (compute.ray_address), or lower learner_ranks and "
        "compute.generators_per_agent",
    )  # fmt: skip
    yield Need("cores", str(cores), str(machine.cores), machine.cores >= cores,
               "lower compute.threads_per_agent")  # fmt: skip
    left = max(1, len(machine.gpus) - ranks - own)
    crowd = max(1, -(-writing // left)) if machine.gpus else 1
    for agent in owners:
        if (shape := shape_of(agent.model)) is None:
            continue
        if agent.trainable and agent.learner_ranks > 1:
            parts = _learning(config, agent, shape, agent.learner_ranks)
            yield _gpu(f"GPU of each learner rank of {agent.name}", parts, machine)
        parts = _writing(config, agent, shape)
        if agent.trainable and agent.learner_ranks == 1:
            parts |= _learning(config, agent, shape, 1)
        if crowd > 1:
            parts[f"{crowd - 1} more on the same GPU"] = (crowd - 1) * sum(parts.values())
        yield _gpu(f"GPU of {agent.name}'s learner or generator", parts, machine)


def _on_cpu(config: RunConfig, owners: list[AgentConfig], machine: Machine) -> Iterator[Need]:
    parts: dict[str, float] = {}
    for agent in owners:
        if shape := shape_of(agent.model):
            copies = 1 + (config.compute.generators_per_agent if agent.trainable else 0)
            mine = _writing(config, agent, shape)
            needed = {name: copies * gib for name, gib in mine.items()}
            if agent.trainable:
                needed |= _learning(config, agent, shape, 1)
            for name, gib in needed.items():
                parts[name] = parts.get(name, 0.0) + gib
    if config.compute.device == "auto" and sum(parts.values()) > machine.memory:
        yield Need("GPUs", "at least 1", "none", False, "models of this size are not for a CPU")
    has = f"{machine.memory:.1f} GiB"
    yield _memory("memory of this machine", parts, machine.memory, has)


def _gpu(what: str, parts: dict[str, float], machine: Machine) -> Need:
    room = min(machine.gpus, default=0.0)
    return _memory(what, parts, room, f"{room:.1f} GiB" if room else "no GPU")


def _memory(what: str, parts: dict[str, float], room: float, has: str) -> Need:
    total = sum(parts.values())
    remedy = (
        "shard it (agents.NAME.learner_ranks), lower training.micro_batch_tokens or "
        "sampling.max_new_tokens, or train adapters (agents.NAME.lora)"
    )
    return Need(what, f"{total:.1f} GiB", has, total <= room, remedy, parts)


def _learning(config: RunConfig, agent: AgentConfig, shape: Shape, ranks: int) -> dict[str, float]:
    """GiB of one rank that learns (`engine.policy.precision`: float32 copies below that)."""
    size = _bytes(config)
    trained = shape.parameters if agent.lora is None else _adapted(agent, shape)
    copies = 4 if size < 4 else 0
    longest = agent.sampling.max_prompt_tokens + agent.sampling.max_new_tokens
    tokens = max(longest, config.training.micro_batch_tokens)
    written = min(tokens, max(agent.sampling.max_new_tokens, tokens // 2))
    parts = {
        "trained weights": (size + copies) * trained / ranks,
        "gradients": (size + copies) * trained / ranks,
        "optimizer": 8 * trained / ranks,
        "activations": size * shape.activated_per_token * tokens,
        # Logits, their float32 log-softmax, and the gradient of both.
        "logits": (2 * size + 8) * shape.vocabulary * written,
    }
    if config.loss.kl_coefficient and agent.lora is None:
        parts["reference"] = size * shape.parameters / ranks
    return {name: amount / GIB for name, amount in parts.items()}


def _writing(config: RunConfig, agent: AgentConfig, shape: Shape) -> dict[str, float]:
    """GiB of an actor that writes: its copy of the weights and the key-value cache."""
    size = _bytes(config)
    weights = size * shape.parameters
    prompt = agent.sampling.max_prompt_tokens
    answer = prompt + agent.sampling.max_new_tokens
    at_once = min(
        max(1, BATCH_PROMPT_TOKENS // prompt),
        config.training.trees_per_step * config.search.nodes_in_flight,
    )
    # vLLM fits its cache to what there is, and needs room for one whole answer at the least.
    rows = 1 if uses_vllm(agent) else at_once
    cache = size * shape.cached_per_token * answer * rows
    parts = {"weights that write": weights, "key-value cache": cache}
    if uses_vllm(agent):
        parts["vLLM's copy of the weights"] = weights / agent.generator.tensor_parallel_size
    return {name: amount / GIB for name, amount in parts.items()}


def _disk(config: RunConfig, owners: list[AgentConfig], machine: Machine) -> Need:
    one = 0.0
    for agent in owners:
        shape = shape_of(agent.model)
        if shape and agent.trainable:
            whole = agent.lora is None
            trained = shape.parameters if whole else _adapted(agent, shape)
            one += (_bytes(config) + 8 + (4 if _bytes(config) < 4 else 0)) * trained / GIB
    kept = config.training.keep_checkpoints + 2  # the best, and the one that is being written
    return Need(
        "disk for checkpoints", f"{kept} times {one:.1f} GiB", f"{machine.disk:.0f} GiB free",
        kept * one <= machine.disk, "free some, or lower training.keep_checkpoints",
    )  # fmt: skip


def _adapted(agent: AgentConfig, shape: Shape) -> int:
    """Weights of adapters on every linear layer, which is the most that they can be."""
    assert agent.lora is not None
    attention = 4 * shape.width + 2 * shape.head_width * (shape.heads + shape.key_value_heads)
    return agent.lora.rank * shape.layers * (attention + 3 * (shape.width + shape.feed_forward))


def _bytes(config: RunConfig) -> int:
    return 2 if config.compute.dtype == "bfloat16" else 4


def _groups(config: RunConfig) -> list[list[AgentConfig]]:
    owners = {name: group[0] for name, group in weight_groups(config.agents).items()}
    return [[owners[name] for name in names] for names in actor_groups(config.agents)]


def _writers(config: RunConfig) -> list[range]:
    """The actors of every process of policies that write: its learner and its generators."""
    more = config.compute.generators_per_agent
    return [
        range(1 + (more if any(a.trainable for a in group) else 0)) for group in _groups(config)
    ]


def _gpus() -> tuple[float, ...]:
    """GiB of each GPU, by the driver's own tool: this process must not load torch for it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command: list[Any] = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GPU_QUERY_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = tuple(float(line) / 1024 for line in done.stdout.split())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else found[: len(visible.split(",")) if visible else 0]
