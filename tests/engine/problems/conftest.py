import pytest

from engine.config.sandbox import SandboxConfig
from engine.sandbox.host.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox():
    with Sandbox(SandboxConfig(workers=2)) as sandbox:
        yield sandbox
