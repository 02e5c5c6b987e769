"""Where the runs of a test are, and what becomes of their engines."""

import pytest

from workers.runs.engine_process import EngineProcess


@pytest.fixture
def var(var_directory):
    """A GROVE_VAR of the test's own; what still runs there in the end is killed."""
    yield var_directory
    for directory in (var_directory / "runs").glob("*"):
        if engine := EngineProcess.adopt(directory):
            engine.kill()
