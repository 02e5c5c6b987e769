"""Schema of the settings: one typed tree for command line, web form, REST and run record.

Invariant: every `RunConfig` is valid. `parse_config` refuses a field that is unknown, out of range
or contradicts another, with the field's path, the given value and what is allowed, before anything
starts. It also refuses what a database or a strict JSON reader would not accept: infinity, NUL,
half a surrogate pair, numbers of more than 64 bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from engine.config.agents import AgentConfig
from engine.config.base import Name, Settings, Whole
from engine.config.compute import ComputeConfig
from engine.config.credit import CreditConfig
from engine.config.environment import EnvironmentConfig
from engine.config.errors import ConfigError, unstorable, validation_errors
from engine.config.evaluation import EvaluationConfig
from engine.config.generator_support import generator_errors
from engine.config.inference import InferenceConfig
from engine.config.judge import JudgeConfig, judge_errors
from engine.config.loss import LossConfig
from engine.config.method_needs import method_errors
from engine.config.method_settings import with_options
from engine.config.overlap import check_overlap
from engine.config.pretrained import PACKAGE_PREFIX, pretrained_model
from engine.config.problems import ProblemsConfig
from engine.config.sandbox import SandboxConfig
from engine.config.search import SearchConfig
from engine.config.training import TrainingConfig
from engine.config.weight_sharing import sharing_errors, with_shared_settings

STARTERS = Path(__file__).parents[1] / "policy" / "starters"


class RunConfig(Settings):
    """Everything that defines a run; enough to run it again."""

    recipe: Name = "mars2"
    """Name of the recipe of these settings, for the record."""
    recipe_version: Whole = Field(0, ge=0)
    """Version of that recipe, for the record; 0 if unknown."""
    seed: int = Field(0, ge=0, lt=2**31)
    """Seed of everything that is sampled: answers, trees, the order of problems."""
    agents: tuple[AgentConfig, ...] = Field(min_length=1, max_length=64)
    problems: ProblemsConfig = ProblemsConfig()
    environment: EnvironmentConfig = EnvironmentConfig()
    search: SearchConfig = SearchConfig()
    credit: CreditConfig = CreditConfig()
    judge: JudgeConfig = JudgeConfig()
    loss: LossConfig = LossConfig()
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    sandbox: SandboxConfig = SandboxConfig()
    compute: ComputeConfig = ComputeConfig()
    inference: InferenceConfig = InferenceConfig()

    @model_validator(mode="after")
    def _names_are_unique(self) -> RunConfig:
        names = [agent.name for agent in self.agents]
        if len(set(names)) < len(names):
            raise ValueError(f"agents: names must differ, got {names}")
        if not any(agent.trainable for agent in self.agents):
            raise ValueError("agents: at least one agent must be trainable")
        return self

    @model_validator(mode="after")
    def _deterministic_runs_ignore_clocks(self) -> RunConfig:
        clocks = {
            "training.minutes": (self.training.minutes, "set only training.steps"),
            "search.seconds_per_tree": (self.search.seconds_per_tree, "set tokens_per_tree"),
        }
        for path, (limit, remedy) in clocks.items():
            if self.compute.deterministic and limit is not None:
                raise ValueError(
                    f"{path} = {limit} with compute.deterministic = true: results would depend "
                    f"on the clock; {remedy}"
                )
        return self

    @model_validator(mode="after")
    def _can_overlap(self) -> RunConfig:
        check_overlap(self.training, self.compute)
        return self


def parse_config(data: Any) -> RunConfig:
    """Builds a `RunConfig` from plain data (JSON, TOML or a form).

    Raises:
        ConfigError: with the path, the value and the reason of every error.
    """
    if errors := unstorable("", data):
        raise ConfigError(errors)
    try:
        config = RunConfig.model_validate(with_shared_settings(data))
    except ValidationError as error:
        raise ConfigError(validation_errors(error)) from None
    if errors := _unknown_names(config):
        raise ConfigError(errors)
    return with_options(config)


def read_config(path: Path) -> RunConfig:
    """Returns the resolved config of a run directory.

    Raises:
        ConfigError: the file is not JSON, or its settings cannot run.
    """
    try:
        return parse_config(json.loads(path.read_text("utf-8")))
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:
        reason = f"is not JSON ({error}); write it anew with `python -m engine prepare`"
        raise ConfigError([{"path": "config", "value": str(path), "reason": reason}]) from None


def _unknown_names(config: RunConfig) -> list[dict[str, Any]]:
    errors = [
        *_unknown_starters(config),
        *_unknown_packages(config),
        *sharing_errors(config.agents),
        *method_errors(config),
        *judge_errors(config),
    ]
    return errors or generator_errors(config)


def _unknown_starters(config: RunConfig) -> list[dict[str, Any]]:
    names = sorted(path.parent.name for path in STARTERS.glob("*/lineage.json"))
    return [
        {
            "path": f"agents.{position}.model",
            "value": agent.model,
            "reason": f"no such starter; choose one of {', '.join(names)}, or name another model",
        }
        for position, agent in enumerate(config.agents)
        if agent.model.startswith("starter:")
        and agent.model.removeprefix("starter:") not in names
        and not agent.shares_weights_with  # the owner's error, reported once
    ]


def _unknown_packages(config: RunConfig) -> list[dict[str, Any]]:
    errors = []
    for position, agent in enumerate(config.agents):
        if not agent.model.startswith(PACKAGE_PREFIX) or agent.shares_weights_with:
            continue
        try:
            pretrained_model(agent.model.removeprefix(PACKAGE_PREFIX))
        except ConfigError:
            raise
        except ValueError as error:
            _, _, reason = str(error).partition(": ")
            errors.append(
                {"path": f"agents.{position}.model", "value": agent.model, "reason": reason}
            )
    return errors
