"""References to agents on a command line, and the settings that they resolve to.

`REFERENCE` or `NAME=REFERENCE`, where a reference is `starter:NAME`; `package:NAME`, which
`grove models add NAME` installed; the directory of a model (a version in the registry is
`models/AGENT` of its run); `registry:NAME@VERSION`, downloaded from a server
(`engine.inference.registry`); `hf:ORG/NAME@REVISION`, downloaded from a hub (`engine.hub`); a run's
directory or one of its `checkpoints/step-N`, for all its agents; or `http://HOST:PORT/v1#MODEL`, an
OpenAI-compatible endpoint. Weights of a run keep the role and the sampling settings of their agent
in that run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from engine.config.errors import ConfigError
from engine.config.generator_support import is_endpoint
from engine.config.pretrained import PACKAGE_PREFIX
from engine.config.schema import RunConfig, read_config
from engine.config.weight_sharing import weight_owner
from engine.hub.pins import pinned
from engine.hub.reference import RepoType, is_hub, parse
from engine.inference.registry import PREFIX as REGISTRY_PREFIX
from engine.inference.registry import registered_model
from engine.policy.models.load import STARTER_PREFIX, check_agent
from engine.recipes import override
from engine.resources.machine_cores import machine_cores
from engine.resources.small_machine import small_machine, with_defaults
from engine.run.checkpoint import STATE, Checkpoints

_NAMED = re.compile(r"([a-z][a-z0-9-]{0,39})=(.+)", re.DOTALL)

Settings = dict[str, Any]


def inference_config(references: Sequence[str], settings: Settings) -> RunConfig:
    """Returns the settings of a search or an evaluation, completed for a machine without a GPU
    (`engine.resources.small_machine`); `settings` maps dotted paths to values.

    Raises:
        ConfigError: a setting is invalid; names its path.
        ValueError: an agent cannot be used; names the reason and the remedy.
    """
    data: Settings = {
        "agents": team_of(references),
        "loss": {"kl_coefficient": 0.0},  # no reference weights: nothing learns here
        "sandbox": {"workers": min(256, machine_cores())},
    }
    override(data, settings)
    config, _ = with_defaults(data, small_machine(), learns=False)
    config = pinned(config)
    for agent in config.agents:
        if not is_endpoint(agent.model):
            check_agent(agent)
    return config


def team_of(references: Sequence[str]) -> list[Settings]:
    """Returns the settings of the agents, with unique names.

    Raises:
        ConfigError: the config.json of a run is invalid.
        ValueError: a run lacks the requested weights, or one name is given for several agents.
    """
    team: list[Settings] = []
    for text in references:
        named = _NAMED.fullmatch(text)
        name, reference = named.groups() if named else ("", text)
        referenced = _agents_behind(reference)
        if name and len(referenced) > 1:
            raise ValueError(f"{text}: holds {len(referenced)} agents; leave out `{name}=`")
        for agent in referenced:
            taken = {other["name"] for other in team}
            if name and name in taken:
                raise ValueError(f"{text}: there is an agent {name} already; names must differ")
            team.append(agent | {"name": name or _free(agent["name"], taken)})
    return team


def _agents_behind(reference: str) -> list[Settings]:
    if is_endpoint(reference):
        model = reference.partition("#")[2] or reference.split("/")[2]
        return [{"name": _slug(model.rsplit("/", 1)[-1]), "model": reference}]
    for prefix in (STARTER_PREFIX, PACKAGE_PREFIX):
        if reference.startswith(prefix):
            return [{"name": _slug(reference.removeprefix(prefix)), "model": reference}]
    if is_hub(reference):
        name = parse(reference, RepoType.MODEL).repository.rpartition("/")[2]
        return [{"name": _slug(name), "model": reference}]
    if reference.startswith(REGISTRY_PREFIX):
        return [_registry_agent(reference)]
    directory = Path(reference).expanduser()
    if _is_run(directory):
        return _agents_of_run(directory)
    if (directory / STATE).is_file() and _is_run(directory.absolute().parent.parent):
        return _agents_of_run(directory.absolute().parent.parent, directory)
    return [_with_its_run(directory.absolute())]


def _registry_agent(reference: str) -> Settings:
    model = registered_model(reference)
    plain = {"name": _slug(model.name), "model": str(model.directory)}
    return (_role_settings(model.agent) if model.agent else {}) | plain


def _is_run(directory: Path) -> bool:
    try:
        return "agents" in json.loads((directory / "config.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError, TypeError):
        return False


def _agents_of_run(run: Path, checkpoint: Path | None = None) -> list[Settings]:
    config = read_config(run / "config.json")
    if checkpoint is None and not (run / "models").is_dir():
        saved = Checkpoints(run, 1).list()
        if not saved:
            raise ValueError(f"{run}: this run has neither models nor checkpoints yet; train it")
        checkpoint = saved[-1]
    folder = checkpoint or run / "models"
    agents = []
    for agent in config.agents:
        own = folder / weight_owner(agent)
        if agent.trainable and not own.is_dir():
            raise ValueError(f"{own} is missing: the weights of agent {agent.name}")
        # A trained model has its chat template in its own tokenizer.
        trained = {"model": str(own)} if agent.trainable else {}
        untrained = {"model": agent.model, "chat_template": agent.chat_template}
        agents.append(_role_settings(agent.model_dump(mode="json")) | (trained or untrained))
    return agents


def _with_its_run(directory: Path) -> Settings:
    """Returns the settings of a model's directory, with role and sampling if it is a run's."""
    plain = {"name": _slug(directory.name), "model": str(directory)}
    above = directory.parent
    run = above.parent if above.name == "models" else above.parent.parent
    if not _is_run(run):
        return plain
    try:
        config = read_config(run / "config.json")
    except ConfigError:
        return plain
    mine = [agent for agent in config.agents if agent.name == directory.name]
    return _role_settings(mine[0].model_dump(mode="json")) | plain if mine else plain


def _role_settings(agent: Settings) -> Settings:
    kept = ("name", "role", "sampling", "template_options")
    return {key: agent[key] for key in kept if key in agent}


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:36]
    return slug if slug[:1].isalpha() else f"agent-{slug}".rstrip("-")


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{n}" for n in count(2) if f"{name}-{n}" not in taken)
