"""Preflight report of a search. Nothing is guessed."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from engine.config.schema import RunConfig
from engine.problems.problem import Problem
from engine.resources.requirements import this_machine
from webapp.experiments.launch.preflight import Finding
from webapp.projects.models import Project
from webapp.registry.services import version_behind

_GIB = 2**30
_BYTES = {"float32": 4, "bfloat16": 2}


def preflight(project: Project, config: RunConfig, problem: Problem) -> list[Finding]:
    """Returns findings on models, problem and budget of a search."""
    return [_memory(project, config), _tests(problem), _budget(config)]


def _memory(project: Project, config: RunConfig) -> Finding:
    """Compares the weights with this machine's memory; each model is loaded once."""
    models = {agent.model for agent in config.agents}
    versions = [version_behind(project, model) for model in models]
    needed = sum(one.parameters for one in versions if one) * _BYTES[config.compute.dtype] / _GIB
    available = this_machine(config, Path(settings.RUNS_DIR)).memory
    if None in versions:
        text = f"unknown: the size of some models is unknown; this machine has {available:.0f} GiB"
        return Finding("Memory", "unknown", text)
    text = f"weights take {needed:.2f} GiB, this machine has {available:.0f} GiB"
    return Finding("Memory", "good" if needed < available else "bad", text)


def _tests(problem: Problem) -> Finding:
    public, private = len(problem.public_tests), len(problem.private_tests)
    text = f"{public} public, shown to the team; {private} private, never shown"
    return Finding("Tests", "good", text)


def _budget(config: RunConfig) -> Finding:
    search = config.search
    limits = [f"{search.nodes_per_tree} nodes"]
    if search.tokens_per_tree:
        limits.append(f"{search.tokens_per_tree} tokens")
    if search.seconds_per_tree:
        limits.append(f"{search.seconds_per_tree:g} seconds")
    first = (
        "the first that passes all public tests ends it"
        if search.stop_when_solved
        else ("the whole budget is used")
    )
    return Finding("Budget", "good", f"at most {', '.join(limits)}; {first}")
