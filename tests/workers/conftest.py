"""Fixtures: the runs directory of a test, and the end of its engines."""

import pytest

from workers.runs.engine_process import EngineProcess


@pytest.fixture
def var(var_directory):
    """A GROVE_VAR of the test's own; engines that still run at the end are killed."""
    yield var_directory
    for directory in (var_directory / "runs").glob("*"):
        if engine := EngineProcess.adopt(directory):
            engine.kill()
