"""A folder for runs whose engines do not outlive the test."""

import pytest

from workers.engine_process import EngineProcess


@pytest.fixture
def var(var_directory):
    yield var_directory
    for directory in (var_directory / "runs").glob("*"):
        if engine := EngineProcess.adopt(directory):
            engine.kill()
