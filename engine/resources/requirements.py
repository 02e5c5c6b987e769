"""Requirements of a run, compared with what this machine has.

Invariant: a run is refused only for what is certain to be missing: estimates leave out all unknown
amounts, and memory that other processes use now does not count. For a remote cluster
(`compute.ray_address`, RAY_ADDRESS) only models and disk are checked here; its cores and GPUs are
checked when the run's actors are placed (`engine.training.cluster`).
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from engine.config.agents import AgentConfig
from engine.config.deadlines import PROGRAM_ANSWER
from engine.config.generator_support import generator_gpus, uses_vllm
from engine.config.pretrained import PACKAGE_PREFIX, pretrained_model
from engine.config.schema import RunConfig
from engine.config.weight_sharing import rank_processes, weight_groups
from engine.hub.download import cached_model
from engine.hub.reference import is_hub
from engine.resources import memory
from engine.resources.bounds import bounds, generating_actors, policy_groups
from engine.resources.machine_cores import machine_cores
from engine.resources.machine_memory import engine_memory
from engine.resources.shapes import Shape, model_folder, shape_of

logger = logging.getLogger(__name__)

SMALL = 1e9
"""Number of parameters from which a CPU cannot train a model in useful time."""


@dataclass(frozen=True)
class Need:
    """One requirement of a run, what the machine has of it, and a remedy if it does not fit."""

    what: str
    needs: str
    has: str
    fits: bool
    remedy: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    """GiB by component."""


@dataclass(frozen=True)
class Machine:
    """Hardware on which a run would execute."""

    cores: int
    memory: float
    """GiB."""
    gpus: tuple[float, ...]
    """GiB of each."""
    disk: float
    """Free GiB on the disk of the run directory."""
    remote: bool = False
    """Whether the run joins a remote cluster."""


def this_machine(config: RunConfig, folder: Path) -> Machine:
    """Returns what this machine has; `folder` is the run directory, which need not exist yet."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return Machine(
        cores=machine_cores(),
        memory=engine_memory() / memory.GIB,
        gpus=() if config.compute.device == "cpu" else installed_gpus(),
        disk=shutil.disk_usage(existing).free / memory.GIB,
        remote=bool(config.compute.ray_address or os.environ.get("RAY_ADDRESS")),
    )


def needs_of(config: RunConfig, machine: Machine) -> list[Need]:
    """Returns all needs of the run, met or not."""
    owners = [group[0] for group in weight_groups(config.agents).values()]
    needs = [_model(agent) for agent in owners]
    on_gpus = config.compute.device == "cuda" or (
        config.compute.device == "auto" and machine.gpus and not config.compute.deterministic
    )
    if not machine.remote:
        needs += _bounds(config, machine.cores, int(machine.memory * memory.GIB))
        needs += _on_gpus(config, owners, machine) if on_gpus else _on_cpu(config, owners, machine)
    needs.append(_disk(config, owners, machine))
    return needs


def report(needs: Sequence[Need]) -> str:
    """Returns one line per need, followed by its memory by component and, if unmet, its remedy."""
    lines = []
    for need in needs:
        lines.append(f"{'ok     ' if need.fits else 'MISSING'} {need.what}: needs {need.needs}, "
                     f"has {need.has}")  # fmt: skip
        if need.parts:
            lines.append(f"        {_format_parts(need.parts)}")
        if need.remedy and not need.fits:
            lines.append(f"        {need.remedy}")
    return "\n".join(lines)


def verdict(needs: Sequence[Need]) -> str:
    """Returns a sentence with the number of unmet needs."""
    missing = sum(not need.fits for need in needs)
    return f"{missing} of {len(needs)} needs are not met here" if missing else "all needs are met"


class HardwareError(ValueError):
    """Raised if a run cannot start here; holds the whole report."""

    def __init__(self, needs: Sequence[Need]):
        super().__init__(f"{verdict(needs)}:\n{report(needs)}")


def require(config: RunConfig, run_dir: Path) -> None:
    """Raises `HardwareError` if this machine is too small for a run of these settings. If only a
    model is missing, its loader reports that."""
    needs = needs_of(config, this_machine(config, run_dir))
    if not all(need.fits for need in needs if not need.what.startswith("agents.")):
        raise HardwareError(needs)


def require_bounds(config: RunConfig) -> None:
    """Raises `HardwareError` if a search or a measurement requests more programs or threads than
    this machine runs: its team is on this machine, whatever cluster there is. As for `require`, the
    settings of the sandbox are lowered to the operator's caps before."""
    needs = list(_bounds(config, machine_cores(), engine_memory()))
    if not all(need.fits for need in needs):
        raise HardwareError(needs)


def _bounds(config: RunConfig, cores: int, memory_bytes: int) -> Iterator[Need]:
    for one in bounds(config, cores, memory_bytes):
        yield Need(one.what, str(one.amount), one.has, one.fits, one.remedy)


def _model(agent: AgentConfig) -> Need:
    here = agent.model.startswith("starter:") or model_folder(agent.model).expanduser().is_dir()
    if is_hub(agent.model):
        here = cached_model(agent.model) is not None
    shape = shape_of(agent.model)
    size = _format_size(shape) if shape else "of unknown size"
    remedy = (
        f"download it and give its directory: agents.{agent.name}.model=/models/"
        f"{Path(agent.model).name}"
    )
    if agent.model.startswith(PACKAGE_PREFIX):
        name = pretrained_model(agent.model.removeprefix(PACKAGE_PREFIX)).name
        remedy = f"run: grove models add {name}"
    has = "it" if here else "no such directory"
    return Need(f"agents.{agent.name}.model", f"{agent.model} ({size})", has, here, remedy)


def _on_gpus(config: RunConfig, owners: list[AgentConfig], machine: Machine) -> Iterator[Need]:
    generators = sum(map(len, generating_actors(config)))
    vllm_gpus = sum(
        generator_gpus(group) * len(actors)
        for group, actors in zip(policy_groups(config), generating_actors(config), strict=True)
    )
    ranks = rank_processes(config.agents)
    # Whole GPUs for ranks and for vLLM's own; the other actors share the rest, at least one.
    least = ranks + vllm_gpus + (1 if generators else 0)
    cores = config.compute.threads_per_agent * (generators + ranks)
    has = f"{len(machine.gpus)} of {min(machine.gpus):.0f} GiB" if machine.gpus else "none"
    yield Need(
        "GPUs", f"{least} to {generators + ranks + vllm_gpus}", has, len(machine.gpus) >= least,
        "join a cluster that has them (compute.ray_address), or lower learner_ranks, "
        "tensor_parallel_size and compute.generators_per_agent"
        + ("; models so small learn without one (compute.device=cpu)" if _small(owners) else ""),
    )  # fmt: skip
    yield Need("cores", str(cores), str(machine.cores), machine.cores >= cores,
               "lower compute.threads_per_agent")  # fmt: skip
    left = max(1, len(machine.gpus) - ranks - vllm_gpus)
    actors_per_gpu = max(1, -(-generators // left)) if machine.gpus else 1
    room = min(machine.gpus, default=0.0)
    saved = 0.0
    for agent in owners:
        if (shape := shape_of(agent.model)) is None:
            continue
        parts = memory.generator_parts(config, agent, shape, room)
        if agent.trainable and agent.learner_ranks > 1:
            yield _rank(config, agent, shape, room)
            saved += memory.checkpoint_gib(agent, shape)
        elif agent.trainable:
            parts = memory.peak_parts(parts | memory.learner_parts(config, agent, shape, 1), agent)
        if actors_per_gpu > 1:
            parts[f"{actors_per_gpu - 1} more on the same GPU"] = (actors_per_gpu - 1) * sum(
                parts.values()
            )
        what, has = f"GPU of {agent.name}'s learner or generator", _gpu_has(room)
        yield _memory(what, parts, room, has, _remedy(parts, agent, config))
        if uses_vllm(agent):
            yield _vllm(config, agent, shape, room)
    if saved:
        has = f"{machine.memory:.0f} GiB"
        parts = {"checkpoints, gathered from the ranks": saved}
        remedy = "take a machine with more, or train adapters (agents.NAME.lora)"
        yield _memory("memory of this machine", parts, machine.memory, has, remedy)


def _on_cpu(config: RunConfig, owners: list[AgentConfig], machine: Machine) -> Iterator[Need]:
    processes = sum(map(len, generating_actors(config))) + rank_processes(config.agents)
    parts: memory.Parts = {f"libraries of {processes} processes": memory.PROCESS * processes}
    for group in policy_groups(config):
        for name, gib in _actor_on_cpu(config, group).items():
            parts[name] = parts.get(name, 0.0) + gib
    too_much = sum(parts.values()) > machine.memory
    if config.compute.device == "auto" and too_much and not _small(owners):
        yield Need("GPUs", "at least 1", "none", False, "models of this size are not for a CPU")
    has = f"{machine.memory:.1f} GiB"
    remedy = _remedy(parts, owners[0], config)
    yield _memory("memory of this machine", parts, machine.memory, has, remedy)


def _actor_on_cpu(config: RunConfig, owners: list[AgentConfig]) -> memory.Parts:
    """Returns the memory of the policies of one actor, and of the generators that serve it."""
    parts: memory.Parts = {}
    for agent in owners:
        if (shape := shape_of(agent.model)) is None:
            continue
        copies = 1 + (config.compute.generators_per_agent if agent.trainable else 0)
        mine = memory.generator_parts(config, agent, shape, 0.0)
        needed = {name: copies * gib for name, gib in mine.items()}
        if agent.trainable:
            # All ranks are on this machine: shards add up to the whole, and what every rank holds
            # counts once per rank.
            ranks = agent.learner_ranks
            each = memory.learner_parts(config, agent, shape, ranks, on_cpu=True)
            needed |= {name: ranks * gib for name, gib in each.items()}
        for name, gib in needed.items():
            before = parts.get(name, 0.0)
            parts[name] = max(before, gib) if name in memory.SHARED else before + gib
    return parts


def _rank(config: RunConfig, agent: AgentConfig, shape: Shape, room: float) -> Need:
    """Returns the need of one rank of an agent's sharded learner; the remedy is the first change
    that suffices."""
    parts = memory.learner_parts(config, agent, shape, agent.learner_ranks)
    remedy = next(_changes(config, agent, shape, room), _remedy(parts, agent, config))
    what = f"GPU of each learner rank of {agent.name}"
    return _memory(what, parts, room, _gpu_has(room), remedy)


def _changes(config: RunConfig, agent: AgentConfig, shape: Shape, room: float) -> Iterator[str]:
    """Yields changes after which a rank fits, the cheapest first."""
    training = config.training.model_copy(update={"recompute_activations": True})
    again = config.model_copy(update={"training": training})
    setting = "" if config.training.recompute_activations else "training.recompute_activations=true"
    ranks = agent.learner_ranks
    for more in (ranks, 2 * ranks, 4 * ranks, 8 * ranks):
        total = sum(memory.learner_parts(again, agent, shape, more).values())
        words = [setting] if setting else []
        if more > ranks:
            words.append(f"agents.{agent.name}.learner_ranks={more}")
        if words and total <= room:
            yield f"{' and '.join(words)} makes it {total:.1f} GiB"


def _vllm(config: RunConfig, agent: AgentConfig, shape: Shape, room: float) -> Need:
    """Returns the need of vLLM's share of a GPU: the minimum that it must hold."""
    parts = memory.vllm_parts(config, agent, shape)
    share = agent.generator.gpu_memory_utilization * room
    has = f"{share:.1f} GiB ({agent.generator.gpu_memory_utilization:g} of {room:.0f})"
    path = f"agents.{agent.name}.generator"
    remedy = (
        f"raise {path}.gpu_memory_utilization or {path}.tensor_parallel_size, or lower "
        f"agents.{agent.name}.sampling.max_new_tokens"
    )
    return _memory(f"vLLM of {agent.name}", parts, share, has if room else "no GPU", remedy)


def _remedy(parts: memory.Parts, agent: AgentConfig, config: RunConfig) -> str:
    """Returns the change that reduces the largest component."""
    name = max(parts, key=lambda part: parts[part], default="")
    path = f"agents.{agent.name}"
    if name == "activations" and not config.training.recompute_activations:
        return "set training.recompute_activations=true: it keeps one number in a dozen of them"
    if name == "activations":
        return f"lower {path}.sampling.max_new_tokens, or training.micro_batch_tokens if it is more"
    if name in ("key-value cache", "generator weights"):
        return (
            f"set {path}.generator.name=vllm with tensor_parallel_size, or lower "
            f"{path}.sampling.max_new_tokens"
        )
    if name.startswith("libraries"):
        return f"lower {path}.learner_ranks or compute.generators_per_agent"
    if name == "vLLM's share":
        return f"lower {path}.generator.gpu_memory_utilization"
    if name.endswith("on the same GPU"):
        return "lower compute.generators_per_agent, or add GPUs"
    return f"shard it over more GPUs ({path}.learner_ranks), or train adapters ({path}.lora)"


def _small(owners: list[AgentConfig]) -> bool:
    shapes = [shape_of(agent.model) for agent in owners]
    return all(shape is not None and shape.parameters < SMALL for shape in shapes)


def _format_parts(parts: memory.Parts) -> str:
    """Returns the components, the largest first; those below 1 % are summed up."""
    total = sum(parts.values())
    large = {name: gib for name, gib in parts.items() if gib >= 0.01 * total}
    texts = [f"{n} {_format_gib(large[n])}" for n in sorted(large, key=large.__getitem__)[::-1]]
    if remainder := total - sum(large.values()):
        texts.append(f"all else {_format_gib(remainder)}")
    return ", ".join(texts)


def _format_gib(gib: float) -> str:
    return f"{gib:.1f} GiB" if gib >= 1 else f"{1024 * gib:.0f} MiB"


def _format_size(shape: Shape) -> str:
    count = shape.parameters
    return f"{count / 1e9:.2f} billion parameters" if count >= 1e8 else f"{count:,} parameters"


def _gpu_has(room: float) -> str:
    return f"{room:.1f} GiB" if room else "no GPU"


def _memory(what: str, parts: memory.Parts, room: float, has: str, remedy: str) -> Need:
    total = sum(parts.values())
    if not room:
        remedy = f"this needs a GPU of {_format_gib(total)} or more"
    return Need(what, _format_gib(total), has, total <= room, remedy, parts)


def _disk(config: RunConfig, owners: list[AgentConfig], machine: Machine) -> Need:
    each_gib = 0.0
    for agent in owners:
        shape = shape_of(agent.model)
        if shape and agent.trainable:
            whole = agent.lora is None
            trained = shape.parameters if whole else memory.adapter_parameters(agent, shape)
            size = memory.number_bytes(config)
            each_gib += (size + 8 + (4 if size < 4 else 0)) * trained / memory.GIB
    count = config.training.keep_checkpoints + 2  # the best, and the one that is being written
    return Need(
        "disk for checkpoints", f"{count} times {_format_gib(each_gib)}",
        f"{machine.disk:.0f} GiB free", count * each_gib <= machine.disk,
        "free some, or lower training.keep_checkpoints",
    )  # fmt: skip


def installed_gpus() -> tuple[float, ...]:
    """Returns the GiB of each GPU by the driver's own tool: this process must not load torch."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    command: list[Any] = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        query = subprocess.run(
            command, capture_output=True, text=True, timeout=PROGRAM_ANSWER.seconds, check=True
        )
    except subprocess.TimeoutExpired:
        logger.warning("no GPU is counted: %s", PROGRAM_ANSWER.passed)
        return ()
    except (OSError, subprocess.SubprocessError):
        return ()
    # Some GPUs share the machine's memory and report none of their own.
    sizes = [line.strip() for line in query.stdout.splitlines() if line.strip()]
    shared = psutil.virtual_memory().total / memory.GIB
    memory_gib = [float(s) / 1024 if s.isdecimal() else shared for s in sizes]
    return tuple(visible_gpus(memory_gib, os.environ.get("CUDA_VISIBLE_DEVICES")))


def visible_gpus(sizes: Sequence[float], visible: str | None) -> list[float]:
    """Returns the GPUs that CUDA_VISIBLE_DEVICES leaves visible: it hides all entries from the
    first one that does not exist. A name with letters may be any of them."""
    if visible is None:
        return list(sizes)
    visible_sizes: list[float] = []
    for name in visible.split(","):
        index = int(name) if name.strip().isdecimal() else len(visible_sizes)
        if not name.strip() or name.strip().startswith("-") or index >= len(sizes):
            break
        visible_sizes.append(sizes[index])
    return visible_sizes
