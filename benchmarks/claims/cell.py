"""A cell, one arm with one seed: its settings, their digest, and its result as JSON.

Invariants: the digest depends on nothing but the starters' weights and the settings that differ
from the engine's defaults, so a setting that the engine gains leaves it as it is; a result appears
whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.claims.claim import Arm, Claim, Plan
from engine.config.schema import RunConfig
from engine.policy.starters import STARTERS, starter_directory
from engine.recipes import FOLDER, load_recipe

VERSION = 1
"""Version of the JSON of a result."""
PROBLEM_SEEDS = 1000
"""Added to a cell's seed: the seed of its problems."""
EVALUATION = {
    "compute.deterministic": True,
    "evaluation.nodes_in_flight": 1,  # with more, nodes are opened before there is a verdict
    "sandbox.workers": 2,
}
"""Settings of every evaluation."""


@dataclass(frozen=True)
class Cell:
    claim: Claim
    arm: Arm
    seed: int
    plan: Plan

    @property
    def name(self) -> str:
        return f"{self.claim.name}/{self.arm.name}-{self.seed}"

    @cached_property
    def config(self) -> RunConfig:
        """The settings of the training run; of its team alone if nothing is trained."""
        plan = self.plan
        common = {
            "seed": self.seed,
            "problems.seed": PROBLEM_SEEDS + self.seed,
            "problems.validation": 0,
            "problems.test": 0,
            "training.steps": plan.steps,
            "training.minutes": None,
            "training.trees_per_step": round(self.arm.trees * plan.trees),
            "training.validate_every": 1_000_000,
            "training.checkpoint_every": 10,
            "training.keep_checkpoints": 1,
            "compute.deterministic": True,
        }
        minibatches = {"training.minibatches": self.claim.minibatches}
        return load_recipe(self.arm.recipe, minibatches | dict(self.arm.settings) | common)

    @property
    def trainings(self) -> list[Cell]:
        """Returns the cells whose training runs this one measures: itself, or those it joins."""
        return [replace(self, arm=arm) for arm in self.arm.joined] or [self]

    def training(self) -> dict[str, Any]:
        """Returns what defines the training runs; empty if nothing is trained."""
        if self.arm.joined:
            joined = [cell.training() for cell in self.trainings]
            for one in joined:
                one.pop("recipe_version", None)  # a label, as in `is_of`
            return {"joined": joined}
        return _without_defaults(self.config) if self.arm.trained else {}

    def evaluation(self) -> dict[str, Any]:
        """Returns what defines the evaluation."""
        search, plan = self.arm.search, self.plan
        agents = len(self.config.agents)
        return {
            "problems": plan.problems,
            "samples": max(1, plan.samples // agents),
            "nodes": search.nodes,
            "seed": self.seed,
            "problem_seed": PROBLEM_SEEDS + self.seed,
            "settings": EVALUATION | dict(search.settings),
            "reward_model": search.reward_model,
            "agents": None if self.arm.trained else _without_defaults(self.config)["agents"],
        }

    @cached_property
    def digest(self) -> str:
        """Returns the SHA-256 of all settings of the cell, in a canonical form."""
        return self._digest_of_version(self.config.recipe_version)

    def is_of(self, result: CellResult) -> bool:
        """Returns whether a result has the settings of this cell. The version of its recipe is a
        label: a later version whose changes the arm overrides leaves the result as it is."""
        return result.digest == self._digest_of_version(result.recipe_version)

    def _digest_of_version(self, recipe_version: int) -> str:
        if recipe_version not in self._digests:
            training = self.training()
            if training:
                training = {**training, "recipe_version": recipe_version}
            parts = {"training": training, "evaluation": self.evaluation()}
            self._digests[recipe_version] = _digest({**parts, "starters": self.starters()})
        return self._digests[recipe_version]

    @cached_property
    def _digests(self) -> dict[int, str]:
        """Digests by version of the recipe: a cell is compared with every result that there is."""
        return {}

    @property
    def training_digest(self) -> str:
        """Returns the SHA-256 of the training run's settings: cells that agree share the run."""
        return _digest({"training": self.training(), "starters": self.starters()})

    def starters(self) -> dict[str, str]:
        """Returns the SHA-256 of the weights of each starter of the team."""
        named = {agent.model.split(":")[1] for agent in self.config.agents if ":" in agent.model}
        return {name: _weights_hash(name) for name in sorted(named & set(STARTERS))}

    def file(self, results: Path) -> Path:
        return results / self.claim.name / f"{self.arm.name}-{self.seed}.json"


def cells_of(claim: Claim, seeds: int, plan: Plan, first: int = 1) -> list[Cell]:
    """Returns the cells of the seeds `first` to `seeds` of a claim, seed by seed, so that every arm
    has as many when it stops."""
    return [Cell(claim, arm, seed, plan) for seed in range(first, seeds + 1) for arm in claim.arms]


def _without_defaults(config: RunConfig) -> dict[str, Any]:
    """Returns the settings that differ from the defaults, without the recipe's name."""
    return config.model_dump(mode="json", exclude_defaults=True, exclude={"recipe"})


def _digest(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _weights_hash(starter: str) -> str:
    return json.loads((starter_directory(starter) / "lineage.json").read_text("utf-8"))["sha256"]


def recipe_hash(name: str) -> str:
    """Returns the SHA-256 of a recipe's file."""
    return hashlib.sha256((FOLDER / f"{name}.toml").read_bytes()).hexdigest()


@dataclass(frozen=True)
class CellResult:
    """The result of a cell, with everything that it depends on."""

    claim: str
    arm: str
    seed: int
    digest: str
    plan: dict[str, int]
    recipe: str
    recipe_version: int
    recipe_sha256: str
    config: dict[str, Any]
    """All settings of the training run, resolved."""
    evaluation: dict[str, Any]
    grove: str
    """Version of Grove."""
    commit: str
    versions: dict[str, str]
    machine: str
    finished_at: str
    """UTC, ISO 8601."""
    figures: dict[str, float | None]
    budget: dict[str, float]
    """Nodes, tokens and parameters that were used, counted in the run's own records."""
    seconds: dict[str, float]
    """Wall-clock seconds by stage; a run that several cells share counts in each."""
    resumed: int = 0
    """How often the training run was interrupted and resumed."""
    version: int = VERSION

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class ResultDamaged(ValueError):
    """A result file is not as the runner wrote it; names the file and the remedy."""


def read_result(file: Path) -> CellResult | None:
    """Returns the result of a file; None if there is no file.

    Raises:
        ResultDamaged: the file is no result of this version.
    """
    try:
        result = CellResult(**json.loads(file.read_text("utf-8")))
        if result.version != VERSION:
            raise ValueError(f"version {result.version}")
        return result
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ResultDamaged(
            f"{file}: no result of version {VERSION} ({error}); restore it, or delete it and run "
            "`python -m benchmarks claims` again"
        ) from None


def write_result(file: Path, result: CellResult) -> None:
    """Writes a result so that the file is complete whenever it exists."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".json.draft")
    draft.write_text(json.dumps(result.to_dict(), indent=1, sort_keys=True) + "\n", "utf-8")
    draft.replace(file)
