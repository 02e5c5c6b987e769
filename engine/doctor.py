"""Says what this machine gives to the engine."""

from __future__ import annotations

import json
import os
from typing import Any

from engine.config import SandboxConfig
from engine.sandbox.checking import self_check
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.sandbox import Sandbox


def examine(as_json: bool = False) -> int:
    """Print one line per part, or one JSON object; 0 if runs can be started here."""
    found = findings()
    if as_json:
        print(json.dumps(found))
    else:
        _print(found)
    return 0 if found["sandbox"]["works"] else 1


def findings() -> dict[str, Any]:
    """What this machine has: cores, torch, Ray, and the sandbox after its self-check."""
    import ray
    import torch

    return {
        "cores": os.cpu_count(),
        "torch": {"version": torch.__version__, "cuda_devices": torch.cuda.device_count()},
        "ray": {"version": ray.__version__, "address": os.environ.get("RAY_ADDRESS") or None},
        "sandbox": _sandbox(),
    }


def _sandbox() -> dict[str, Any]:
    try:
        with Sandbox(SandboxConfig()) as sandbox:
            self_check(sandbox)
            walls = [*sandbox.walls(), "limits"]
            return {"works": True, "tier": sandbox.tier(), "walls": walls}
    except SandboxUnavailable as error:
        return {"works": False, "reason": str(error)}


def _print(found: dict[str, Any]) -> None:
    torch, ray, sandbox = found["torch"], found["ray"], found["sandbox"]
    print(f"cores: {found['cores']}")
    print(f"torch: {torch['version']}, {torch['cuda_devices']} CUDA devices")
    address = ray["address"] or "unset: Ray is started locally"
    print(f"ray: {ray['version']}, RAY_ADDRESS {address}")
    if sandbox["works"]:
        walls = ", ".join(sandbox["walls"])
        print(f"sandbox: tier {sandbox['tier']}, passes its self-check; walls: {walls}")
    else:
        print(f"sandbox: unavailable: {sandbox['reason']}")
