"""Tests that a forked actor differs in nothing that matters from one that Ray starts."""

import os

import pytest
import ray

from engine.config.compute import ComputeConfig
from engine.preload.environment import runtime_environment
from engine.training.team import Team
from tests.engine.preload.looking import Looking
from tests.engine.training.test_overlap import settings
from tests.helpers.waiting import patience

pytestmark = pytest.mark.slow


@pytest.fixture
def joined(ray_address):
    ray.init(address=ray_address, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def started(environment):
    return ray.remote(Looking).options(num_cpus=1, runtime_env=environment).remote()


def test_a_fork_has_what_a_worker_has_and_its_own_random_numbers(joined):
    environment = runtime_environment(ComputeConfig(threads_per_agent=1))
    plain = started({"env_vars": environment["env_vars"]})
    forks = [started(environment) for _ in range(2)]
    parents = ray.get([actor.parent.remote() for actor in forks], timeout=200 * patience())
    assert parents[0] == parents[1] != ray.get(plain.parent.remote(), timeout=200 * patience())
    expected, *actual = ray.get(
        [a.facts.remote() for a in (plain, *forks)], timeout=200 * patience()
    )
    for fact, value in expected.items():
        assert [report[fact] for report in actual] == [value, value], fact
    drawn = ray.get([actor.drawn.remote() for actor in forks], timeout=60 * patience())
    assert all(first != second for first, second in zip(*drawn, strict=True))


def test_models_are_in_forks_and_the_sandbox_is_in_a_process_without_torch(ray_address):
    def unheard(name, deadline):
        pass

    def parent(self):
        return os.getppid()

    def has_torch(self):
        import sys

        return "torch" in sys.modules

    # A second job of this Ray, whose actors come from the server that the first one started.
    team = Team(settings({"generators_per_agent": 1, "ray_address": ray_address}), unheard)
    try:
        team.ready()
        calls = [actor.__ray_call__.remote(parent) for actor in team.actors]
        servers = set(ray.get(calls, timeout=60 * patience()))
        (place,) = team.verifier.verifiers
        (raylet,) = ray.get([place.actor.__ray_call__.remote(parent)], timeout=60 * patience())
        assert len(servers) == 1 and raylet not in servers
        assert not ray.get(place.actor.__ray_call__.remote(has_torch), timeout=60 * patience())
    finally:
        team.close()
