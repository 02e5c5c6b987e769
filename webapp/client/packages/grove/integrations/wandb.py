"""Stand-in for W&B, for libraries that import it themselves (transformers, TRL, Lightning).

    import grove as wandb
    from grove.integrations.wandb import install

    install()  # before the library is imported
    from trl import GRPOConfig, GRPOTrainer

`import wandb` is `grove` from then on in this process, whether or not W&B is installed. Libraries
name projects of W&B's: `install(project="Oaks")`, or `GROVE_PROJECT`, is the project of every run
instead. W&B's variables count where Grove's own are not set: WANDB_PROJECT, WANDB_NAME,
WANDB_RUN_ID, WANDB_RUN_GROUP, WANDB_TAGS, WANDB_NOTES, WANDB_RESUME, WANDB_MODE, WANDB_DISABLED.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from functools import cache, partial
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from types import ModuleType
from typing import Any

import grove
from webapp.client import tracking
from webapp.client.tracking import media
from webapp.client.tracking.arguments import stand_in

_ANY = DistributionFinder.Context()


class Unusable(RuntimeError):
    """Raised by `install` if W&B itself is imported already."""


class ConfigError(Exception):
    """W&B's error for a setting that is changed, which Grove allows."""


class RunDisabled:
    """W&B's run of mode disabled; of Grove it is a `Run`."""


class _StandIn(Distribution):
    """W&B as installed: libraries look up its version before they import it."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: wandb\nVersion: {tracking.WANDB_VERSION}\n"

    def locate_file(self, path: str | PathLike[str]) -> Any:
        raise FileNotFoundError(path)


class _Finder(DistributionFinder):
    """Finds the stand-in by its name, and no module."""

    def find_spec(self, *_: Any, **__: Any) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterable[_StandIn]:
        return [_StandIn()] if context.name == "wandb" else []


_MEDIA = ("Audio", "EvalTable", "Graph", "Histogram", "Html", "Image", "JoinedTable", "Molecule",
          "Object3D", "Plotly", "Table", "Video")  # fmt: skip


class ServerResponseError(Exception):
    """W&B's error for an answer of its server."""


def install(project: str | None = None, entity: str | None = None) -> None:
    """Makes `import wandb` mean `grove`; a repeated call does nothing. `project` is the project of
    every run, whatever a library names, and `entity` its workspace.

    Raises:
        Unusable: W&B was imported before.
    """
    present = sys.modules.get("wandb")
    if present is grove:
        return
    if present is not None:
        raise Unusable("wandb is imported already: call install() before what imports it")
    stand_in(project, entity)
    sys.modules["wandb"] = grove
    sys.modules.update(submodules())
    sys.modules["wandb.plot"] = grove.plot
    sys.meta_path.insert(0, _Finder())


@cache
def submodules() -> dict[str, ModuleType]:
    """Returns the modules of W&B's package that trainers import or name, by their full names."""
    made: dict[str, ModuleType] = {}
    for name, members in _modules().items():
        module = made[name] = ModuleType(name, "Part of W&B's package, by Grove.")
        vars(module).update(members)
        parent, _, own = name.rpartition(".")
        if parent in made:
            vars(made[parent]).setdefault(own, module)
    return made


def _modules() -> dict[str, dict[str, Any]]:
    """Returns the modules of W&B's package that trainers import, each after its parent."""
    errors = {name: getattr(grove, name) for name in ("Error", "CommError", "UsageError")}
    kinds = {name: getattr(media, name) for name in _MEDIA}
    terms = {name: getattr(grove, name) for name in ("termlog", "termwarn", "termerror")}
    ids = {"generate_id": grove.util.generate_id}
    safe = {"make_artifact_name_safe": grove.util.make_artifact_name_safe}
    modules: dict[str, dict[str, Any]] = {
        "wandb.sdk": {"Settings": grove.Settings, "Artifact": grove.Artifact},
        "wandb.sdk.lib": {"RunDisabled": RunDisabled},
        "wandb.sdk.lib.config_util": {"ConfigError": ConfigError},
        "wandb.sdk.lib.runid": ids,
        "wandb.sdk.wandb_run": {"Run": grove.Run},
        "wandb.sdk.wandb_settings": {"Settings": grove.Settings},
        "wandb.sdk.wandb_config": {"Config": grove.Config},
        "wandb.sdk.mailbox": {},
        "wandb.sdk.mailbox.mailbox_handle": {"ServerResponseError": ServerResponseError},
        "wandb.sdk.data_types": {},
        "wandb.sdk.data_types.base_types": {},
        "wandb.sdk.data_types.base_types.wb_value": {"WBValue": media.Media},
        "wandb.wandb_run": {"Run": grove.Run},
        "wandb.errors": errors,
        "wandb.errors.term": terms,
        "wandb.util": {**ids, **safe, "json_dumps_safer": partial(json.dumps, default=str)},
        "wandb.data_types": {**kinds, "WBValue": media.Media},
        "wandb.apis": {},
        "wandb.apis.public": {"Api": grove.Api},
    }
    for name, kind in kinds.items():
        modules[f"wandb.sdk.data_types.{name.lower()}"] = {name: kind}
    return modules
