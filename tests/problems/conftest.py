import pytest

from engine.config import SandboxConfig
from engine.sandbox.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox():
    with Sandbox(SandboxConfig(workers=2)) as sandbox:
        yield sandbox
