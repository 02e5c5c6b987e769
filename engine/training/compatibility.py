"""Compatibility of a resumed run with its checkpoint: what may change, and what may not.

Invariant: a run resumes only if its weights would have been learned under the new settings too.
Every change is refused that is not listed here as free; a setting that is added later is refused
until it is listed.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from engine.config.agents import AgentConfig
from engine.config.errors import ConfigError
from engine.config.methods import registry
from engine.config.schema import RunConfig, parse_config
from engine.policy.models.load import model_folders
from engine.problems.identity import set_hash
from engine.problems.source import GENERATED, ProblemSet
from engine.run.checkpoint import sha256_of

MAY_CHANGE = frozenset(
    {
        "recipe",  # a label
        "recipe_version",
        "training.steps",  # length of the run; schedules stretch from here on
        "training.minutes",
        "training.validate_every",
        "training.checkpoint_every",
        "training.keep_checkpoints",
        "sandbox.workers",
        "sandbox.allow_unsafe",
        "judge.requests_at_once",
        "judge.request_seconds",
        "judge.retry_seconds",
        "compute.ray_address",
        "compute.placement",
        "compute.strategy",
        "compute.placement_seconds",
        "inference",  # used by other commands
    }
)
"""Settings, and sections of settings, that never affect what is learned."""

CHANGES_ROUNDING = frozenset(
    {
        "training.micro_batch_tokens",
        "training.row_layout",
        "training.recompute_activations",
        "agents.*.learner_ranks",
        "agents.*.generator.name",
        "agents.*.generator.gpu_memory_utilization",
        "agents.*.generator.cpu_cache_gib",
        "agents.*.generator.tensor_parallel_size",
        "agents.*.generator.enforce_eager",
        "compute.threads_per_agent",
        "compute.lanes",
    }
)
"""Settings that change only the order of sums and draws: free to change, except in deterministic
mode."""

JUDGED_BY_CONTENT = frozenset({"problems.dataset", "problems.format"})
"""Settings that name files: these may move, but their content may not change. The same holds for
agents' models and chat templates."""

_MODEL_FILES = frozenset({".safetensors", ".json", ".jinja", ".model", ".txt"})


class ResumeError(ConfigError):
    """The run cannot resume with these settings; lists every difference by its path."""


@dataclass(frozen=True)
class RunRecord:
    """Identity of a run: saved with every checkpoint, compared when the run resumes."""

    config: dict[str, Any]
    problems: dict[str, str]
    """Number of problems and hash of their content, by split."""
    models: dict[str, str]
    """Hash of each agent's starting model and chat template, by agent."""

    @classmethod
    def of(cls, config: RunConfig, problems: ProblemSet) -> RunRecord:
        """Returns the record of a run that is about to start; reads every model's files once."""
        models = {agent.name: _model_hash(agent) for agent in config.agents}
        return cls(config.model_dump(mode="json"), _problem_hashes(config, problems), models)

    def state(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)


def check_compatible(saved: dict[str, Any], now: RunRecord) -> None:
    """Refuses to resume from an incompatible checkpoint; `saved` is the `state()` of its record.

    Raises:
        ResumeError: lists every difference, with its path, both values and the remedy.
    """
    before = msgspec.convert(saved, RunRecord)
    issues = [
        *_changed_settings(settings_with_defaults(before.config), now.config),
        *_changed_content("problems.{}", before.problems, now.problems),
        *changed_models(before.models, now.models),
    ]
    if issues:
        raise ResumeError(issues)


def changed_models(before: dict[str, str], now: dict[str, str]) -> list[dict[str, Any]]:
    """Returns a fault, by path, for each agent whose starting model has changed its content."""
    return _changed_content("agents.{}.model", before, now)


def settings_with_defaults(saved: dict[str, Any]) -> dict[str, Any]:
    """Returns a checkpoint's settings, with defaults for settings added since it was written.

    Raises:
        ResumeError: the settings are no longer valid.
    """
    try:
        return parse_config(saved).model_dump(mode="json")
    except ConfigError as error:
        raise ResumeError(
            [
                {
                    **issue,
                    "reason": f"the checkpoint holds it, but it cannot run: {issue['reason']}",
                }
                for issue in error.problems
            ]
        ) from None


def _changed_settings(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    old, new = _flat("", before), _flat("", now)
    free = MAY_CHANGE | JUDGED_BY_CONTENT
    if not now["compute"]["deterministic"]:
        free |= CHANGES_ROUNDING
    return [
        {"path": path, "value": new.get(path), "reason": _reason(old.get(path))}
        for path in [*new, *(path for path in old if path not in new)]
        if old.get(path) != new.get(path) and not _is_free(path, free)
    ]


def _changed_content(
    path: str, before: dict[str, str], now: dict[str, str]
) -> list[dict[str, Any]]:
    # Agents and splits that were added or removed are reported by their settings.
    return [
        {"path": path.format(name), "value": now[name], "reason": _reason(before[name])}
        for name in before
        if name in now and before[name] != now[name]
    ]


def _reason(old: Any) -> str:
    return (
        f"the run was begun with {'nothing' if old is None else old}, and what it learned depends "
        "on it; put it back, or start a new run"
    )


def _is_free(path: str, free: frozenset[str]) -> bool:
    if path.startswith("agents."):  # the second part is the agent's index
        path = "agents.*." + path.split(".", 2)[-1]
    is_free = path in free or path.partition(".")[0] in free
    return is_free or _names_a_file(path) or _is_of_gauges(path)


def _is_of_gauges(path: str) -> bool:
    """Whether a setting chooses gauges or is an option of one: they only read events."""
    gauges = registry("gauges")
    section, name, *_ = [*path.split("."), ""]
    return section == gauges.section and (
        name == gauges.setting or gauges.methods.options(name) is not None
    )


def _names_a_file(path: str) -> bool:
    """Whether a setting is an agent's model or chat template, compared by content."""
    return path.startswith("agents.") and path.endswith((".model", ".chat_template"))


def _flat(path: str, value: Any) -> dict[str, Any]:
    """Returns the leaves of a settings tree by dotted path."""
    if isinstance(value, dict) and value:
        items = list(value.items())
    elif isinstance(value, list) and value:
        items = list(enumerate(value))
    else:
        return {path: value}
    return {
        leaf: leaf_value
        for key, item in items
        for leaf, leaf_value in _flat(f"{path}.{key}".lstrip("."), item).items()
    }


def _problem_hashes(config: RunConfig, problems: ProblemSet) -> dict[str, str]:
    train = problems.train
    if config.problems.dataset == GENERATED:
        # Generated one by one during the run, from a seed that is in the settings.
        train = [problems.train[0]]
    splits = {"train": train, "validation": problems.validation, "test": problems.test}
    return {
        name: f"{len(split)} problems with content {set_hash(split)[:16]}"
        for name, split in splits.items()
    }


def _model_hash(agent: AgentConfig) -> str:
    """Returns a hash of the files from which weights, tokenizer and chat template are loaded."""
    folders = model_folders(agent.model)
    files = [f for folder in folders for f in sorted(folder.iterdir()) if f.suffix in _MODEL_FILES]
    names = [file.name for file in files]
    if agent.chat_template is not None:
        files.append(Path(agent.chat_template).expanduser())
        names.append("chat_template")  # whatever the file's name
    with ThreadPoolExecutor(4) as threads:
        digests = list(threads.map(sha256_of, files))
    named = list(zip(names, digests, strict=True))
    return f"files with content {hashlib.sha256(repr(named).encode()).hexdigest()[:16]}"
