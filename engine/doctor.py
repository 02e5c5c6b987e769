"""Says what this machine gives to the engine."""

from __future__ import annotations

import os

from engine.config import SandboxConfig
from engine.sandbox.errors import SandboxUnavailable
from engine.sandbox.sandbox import Sandbox
from engine.sandbox.verify import self_check


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
            print(f"sandbox: passes its self-check; walls: {', '.join(sandbox.walls())}, limits")
    except SandboxUnavailable as error:
        print(f"sandbox: unavailable: {error}")
        return 1
    return 0
