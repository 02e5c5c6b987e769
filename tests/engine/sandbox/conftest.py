"""One real sandbox for all tests of this folder; tests that break it build their own."""

import pytest

from engine.config.sandbox import SandboxConfig
from engine.sandbox.host.job import Job
from engine.sandbox.host.sandbox import Sandbox

LIMITS = {"cpu_seconds": 0.4, "wall_seconds": 3.0, "memory_mb": 64, "output_bytes": 4096}


@pytest.fixture
def limits():
    return LIMITS


@pytest.fixture(scope="session")
def sandbox():
    with Sandbox(SandboxConfig(workers=1, **LIMITS)) as sandbox:
        yield sandbox


@pytest.fixture
def outcomes(sandbox):
    """Outcomes of `solve` in a program, one per call; each call is a tuple of arguments."""

    def run(program, *calls):
        (execution,) = sandbox.run([Job(program, "solve", calls or ((),))])
        assert len(execution.outcomes) == max(1, len(calls))
        return execution.outcomes

    return run


@pytest.fixture
def honest(outcomes):
    """Asserts that the next honest program is judged right."""

    def check():
        (outcome,) = outcomes("def solve(x):\n    return sorted(x)\n", ([2, 1],))
        assert (outcome.verdict, outcome.value) == (None, [1, 2])

    return check
