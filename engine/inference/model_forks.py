"""Which models of a team without a trainer are forked, and an early start of what they fork from.

Imports little: it runs before the rest of a search is imported, which then happens alongside.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.config.agents import AgentConfig
from engine.config.generator_support import is_endpoint, uses_vllm
from engine.config.schema import RunConfig
from engine.preload.fork_server import start_fork_server
from engine.resources.requirements import this_machine


def prepare_forks(run: RunConfig) -> None:
    """Starts the fork server if a model of the run will be forked; does not wait for it."""
    local = [agent for agent in run.agents if not is_endpoint(agent.model)]
    if local and not needs_own_start(run, local):
        start_fork_server()


def needs_own_start(run: RunConfig, agents: Iterable[AgentConfig]) -> bool:
    """Returns whether the process of these agents' model must be spawned: the order of summation
    has to be set before torch is imported, vLLM starts processes of its own, and a GPU's driver
    does not survive a fork."""
    return run.compute.deterministic or any(map(uses_vllm, agents)) or has_gpus(run)


def has_gpus(run: RunConfig) -> bool:
    """Returns whether a model may be on a GPU."""
    return bool(this_machine(run, Path.cwd()).gpus)
