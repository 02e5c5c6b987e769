"""Registration of a run's checkpoint as a version: the weights of an agent after a step.

Invariants: the files are hard-linked into a folder of the version, so they survive whatever the run
removes later; the same step of the same agent is one version. Only the headers of the weights are
read: the manifest lists the contents of a checkpoint.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import transaction

from engine.config.run_forks import MANIFEST
from webapp.accounts.models import User
from webapp.disk import cause_of
from webapp.experiments.launch.checkpoints import checkpoint_path, checkpoint_steps
from webapp.experiments.models import Run
from webapp.model_names import REQUIRED, is_of_a_model
from webapp.registry.errors import RegistryRefused
from webapp.registry.model_files.checking import checked
from webapp.registry.model_files.layout import (
    files_of,
    inspect_with_digests,
)
from webapp.registry.models import ModelVersion
from webapp.registry.services import add_folder, lock, origin_of


def register_checkpoint(run: Run, step: int, agent: str, user: User) -> tuple[ModelVersion, bool]:
    """Returns the version of the weights of `agent` after `step`, and whether it is new.

    Raises:
        RegistryRefused: there is no such checkpoint, or no complete model of the agent in it.
        WeightsError: its files are not those of a model. Queued: it is not its turn.
    """
    linked = _link_checkpoint(run, step, _owner(run, agent))
    paths = {file.name: linked.folder / file.name for file in files_of(linked.folder)}
    checked(paths, run.project, user, [run.pk, step, agent])
    contents = inspect_with_digests(linked.folder, linked.sha256)
    with transaction.atomic():
        lock(run.project)
        if existing := run.versions.filter(agent=agent, step=step).first():
            return existing, False
        model, lineage = origin_of(run, agent)
        fields = {**lineage, "step": step, "created_by": user}
        return add_folder(model, linked.folder, contents, **fields), True


class _LinkedCheckpoint:
    """Linked files of a checkpoint: their folder, and their digests by name."""

    def __init__(self, folder: Path, sha256: Mapping[str, str]):
        self.folder, self.sha256 = folder, sha256


def _owner(run: Run, agent: str) -> str:
    """Returns the agent that owns the weights of `agent`."""
    agents: dict[str, dict[str, Any]] = {one["name"]: one for one in run.config.get("agents", ())}
    if agent not in agents:
        raise RegistryRefused(f"{run} has no agent {agent!r}; there are {', '.join(agents)}.")
    return agents[agent].get("shares_weights_with") or agent


def _link_checkpoint(run: Run, step: int, owner: str) -> _LinkedCheckpoint:
    checkpoint = checkpoint_path(run, step)
    target = checkpoint.parents[1] / "registered" / checkpoint.name / owner
    partial = target.with_name(f"partial-{owner}-{secrets.token_hex(4)}")
    sha256: dict[str, str] = {}
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text())["files"]
        sha256 = {
            name.removeprefix(f"{owner}/"): one["sha256"]
            for name, one in manifest.items()
            if name.startswith(f"{owner}/") and is_of_a_model(name.removeprefix(f"{owner}/"))
        }
        if set(REQUIRED) - sha256.keys():
            raise RegistryRefused(
                f"The checkpoint holds an adapter of {owner}, not a whole model; the run's final "
                "weights are registered as a whole."
            )
        if not target.is_dir():
            partial.mkdir(parents=True)
            for name in sha256:
                os.link(checkpoint / owner / name, partial / name)
            partial.rename(target)
    except FileNotFoundError:
        steps = ", ".join(map(str, checkpoint_steps(run))) or "none"
        raise RegistryRefused(
            f"{run} has no checkpoint of step {step}; there are {steps}."
        ) from None
    except OSError as error:
        if not (sha256 and target.is_dir()):  # else a concurrent request made it
            raise RegistryRefused(
                f"The files of the checkpoint cannot be linked: {cause_of(error)}."
            ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return _LinkedCheckpoint(target, sha256)
