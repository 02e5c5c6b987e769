"""The time that chat templates write: one for a whole run, however long it takes.

`strftime_now` of a template (`Today is ...` of Llama 3) would give prompts of one statement that
differ within a search, and others after a resume. Invariant: the time is local, chosen when a run
with such a template begins, and kept in `clock.json` of its directory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from engine.config.agents import AgentConfig
from engine.config.generator_support import is_endpoint
from engine.policy.models.load import model_folders

FILE_NAME = "clock.json"
_CALL = b"strftime_now"
_TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")


def run_clock(
    agents: Sequence[AgentConfig], run_dir: Path | None = None, reward_model: str | None = None
) -> str | None:
    """Returns the local time of a run in ISO 8601, from its directory if it has begun before; None
    if no template of its agents and of its reward model, a directory, writes the time.

    Raises:
        ValueError: `clock.json` holds no time; names it. OSError: it cannot be written.
    """
    files = [file for agent in agents for file in _templates_of(agent)]
    if reward_model is not None:
        files += [Path(reward_model).expanduser() / name for name in _TEMPLATES]
    if not any(map(_writes_time, files)):
        return None
    now = datetime.now().isoformat()
    if run_dir is None:
        return now
    file = run_dir / FILE_NAME
    if not file.exists():
        draft = file.with_name(f"{FILE_NAME}.draft")
        draft.write_text(json.dumps({"local_time": now}))
        draft.replace(file)
    try:
        return datetime.fromisoformat(json.loads(file.read_text())["local_time"]).isoformat()
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f'{file}: {type(error).__name__}: {error}; give {{"local_time": "{now}"}}, the time '
            "that chat templates write in this run"
        ) from None


def _templates_of(agent: AgentConfig) -> list[Path]:
    if is_endpoint(agent.model):
        return []
    if agent.chat_template is not None:
        return [Path(agent.chat_template).expanduser()]
    return [folder / name for folder in model_folders(agent.model) for name in _TEMPLATES]


def _writes_time(file: Path) -> bool:
    with suppress(OSError):
        return _CALL in file.read_bytes()
    return False
