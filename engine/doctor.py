"""Says what this machine gives to the engine."""

from __future__ import annotations

import os

from engine.config import SandboxConfig
from engine.sandbox.checking import self_check
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.sandbox import Sandbox


def examine() -> int:
    """Print one line per part; 0 if runs can be started here."""
    import ray
    import torch

    print(f"cores: {os.cpu_count()}")
    print(f"torch: {torch.__version__}, {torch.cuda.device_count()} CUDA devices")
    address = os.environ.get("RAY_ADDRESS") or "unset: Ray is started locally"
    print(f"ray: {ray.__version__}, RAY_ADDRESS {address}")
    try:
        with Sandbox(SandboxConfig()) as sandbox:
            self_check(sandbox)
            walls = ", ".join((*sandbox.walls(), "limits"))
            print(f"sandbox: tier {sandbox.tier()}, passes its self-check; walls: {walls}")
    except SandboxUnavailable as error:
        print(f"sandbox: unavailable: {error}")
        return 1
    return 0
