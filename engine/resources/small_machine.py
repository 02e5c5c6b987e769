"""Settings of pretrained models on a machine without a GPU, where nothing is stated.

Invariants:
- What a recipe, an override or a command states is never changed.
- Starters, models of unknown size and those too large for a CPU are left alone, so that their runs
  are the same on every machine.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config.agents import DecodingWeights, GeneratorName
from engine.config.schema import RunConfig, parse_config
from engine.config.weight_sharing import actor_groups
from engine.resources.machine_cores import machine_cores
from engine.resources.requirements import SMALL, installed_gpus
from engine.resources.shapes import shape_of

LEAST_PARAMETERS = 10_000_000
"""Parameters of the smallest model that is treated as pretrained."""
LEARNING_RATE = 2e-4
"""Peak learning rate of adapters: a hundred times that of all weights, as they start from zero."""
CPU_FLAGS = ("avx512_bf16", "amx_bf16", "bf16")
"""Features of x86 and ARM processors that multiply bfloat16, as /proc/cpuinfo names them."""

Plain = dict[str, Any]


@dataclass(frozen=True)
class SmallMachine:
    """A machine whose models run on its cores."""

    cores: int
    bfloat16: bool
    """Whether the processor multiplies bfloat16."""
    adapters: bool
    """Whether the extra `lora` is installed."""


def small_machine() -> SmallMachine | None:
    """Returns this machine; None if it has a GPU, or if runs join a cluster."""
    if os.environ.get("RAY_ADDRESS") or installed_gpus():
        return None
    return SmallMachine(
        cores=machine_cores(),
        bfloat16=multiplies_bfloat16(),
        adapters=importlib.util.find_spec("peft") is not None,
    )


def multiplies_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Returns whether the processor multiplies bfloat16; False where it is unknown."""
    try:
        lines = cpuinfo.read_text("utf-8").splitlines()
    except OSError:
        return False
    features = {
        word
        for line in lines
        if line.partition(":")[0].strip() in ("flags", "Features")
        for word in line.partition(":")[2].split()
    }
    return not features.isdisjoint(CPU_FLAGS)


def with_defaults(
    data: Plain,
    machine: SmallMachine | None,
    *,
    learns: bool = True,
    located: Mapping[str, str] | None = None,
) -> tuple[RunConfig, Plain]:
    """Returns the settings of plain data, completed for the machine, and what was added to them, by
    dotted path.

    `learns` is whether agents are trained; `located` has the directory of an agent's model, by the
    agent's name, where the data have a name that is resolved elsewhere.

    Raises:
        ConfigError: the data are no valid settings.
    """
    config = parse_config(data)
    compute = config.compute
    if machine is None or compute.device == "cuda" or compute.ray_address:
        return config, {}
    completed, added, located = copy.deepcopy(data), {}, located or {}
    for index, agent in enumerate(config.agents):
        # parse_config has refused anything but tables.
        given = completed["agents"][index]
        if agent.shares_weights_with or not _fits_a_cpu(located.get(agent.name, agent.model)):
            continue
        for path, value in _of_agent(given, machine, learns and agent.trainable):
            _set(given, path, value)
            added[f"agents.{agent.name}.{path}"] = value
    if not added:
        return config, {}
    given = completed.setdefault("compute", {})
    if machine.bfloat16 and "dtype" not in given:
        given["dtype"] = added["compute.dtype"] = "bfloat16"
    config = parse_config(completed)
    if "threads_per_agent" not in given:
        actors = len(actor_groups(config.agents)) * (1 + compute.generators_per_agent)
        threads = max(1, machine.cores // actors)
        given["threads_per_agent"] = added["compute.threads_per_agent"] = threads
        config = parse_config(completed)
    return config, added


def _fits_a_cpu(model: str) -> bool:
    shape = shape_of(model)
    return shape is not None and LEAST_PARAMETERS <= shape.parameters < SMALL


def _of_agent(given: Plain, machine: SmallMachine, learns: bool) -> Iterator[tuple[str, Any]]:
    """Yields (path, value) of what an agent's settings leave out."""
    generator = given.get("generator") or {}
    is_torch = generator.get("name", GeneratorName.TORCH) == GeneratorName.TORCH
    if is_torch and "weights" not in generator:
        yield "generator.weights", str(DecodingWeights.AUTO)
    one_rank = given.get("learner_ranks", 1) == 1
    if learns and machine.adapters and one_rank and "lora" not in given:
        yield "lora", {}
        if "learning_rate" not in (given.get("optimizer") or {}):
            yield "optimizer.learning_rate", LEARNING_RATE


def _set(agent: Plain, path: str, value: Any) -> None:
    section, _, name = path.partition(".")
    if not name:
        agent[section] = value
        return
    agent[section] = {**(agent.get(section) or {}), name: value}


def lines_of(added: Plain) -> list[str]:
    """Returns a line that names the machine, and one per setting that was added."""
    if not added:
        return []
    head = "no GPU here: a pretrained model gets these settings unless they are given:"
    return [head, *(f"  {path}={_text(value)}" for path, value in added.items())]


def _text(value: Any) -> str:
    return "{}" if value == {} else str(value)
