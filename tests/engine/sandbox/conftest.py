"""One real sandbox for all tests of this folder; tests that break it build their own.

Its wall limit is one that no program reaches which does not wait for ever: a busy machine would
reach a short one. A test of the wall limit gives its own jobs a short one.
"""

from dataclasses import replace

import pytest

from engine.config.sandbox import SandboxConfig
from engine.sandbox.host.job import Job, bounds
from engine.sandbox.host.sandbox import Sandbox
from tests.helpers.waiting import patience


@pytest.fixture(scope="session")
def limits():
    return {
        "cpu_seconds": 0.4,
        "wall_seconds": 60.0 * patience(),
        "memory_mb": 64,
        "output_bytes": 4096,
    }


@pytest.fixture(scope="session")
def sandbox(limits):
    with Sandbox(SandboxConfig(workers=1, **limits)) as sandbox:
        yield sandbox


@pytest.fixture
def outcomes(sandbox):
    """Outcomes of `solve` in a program, one per call; each call is a tuple of arguments."""

    def run(program, *calls, **limits):
        given = replace(bounds(sandbox.config), **limits)
        (execution,) = sandbox.run([Job(program, "solve", calls or ((),), bounds=given)])
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
