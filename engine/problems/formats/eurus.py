"""Eurus-2-RL-Data (PRIME-RL) and others in the layout of verl with tests as the ground truth.

Row: `prompt` (a conversation: a list of {"role", "content"}, or a text), `reward_model`
({"ground_truth": JSON with `inputs`, `outputs` and perhaps `fn_name`}), `data_source`, `ability`,
`extra_info`.

The statement is the last message of the user. Judged as APPS; rows whose ground truth is no tests
(of mathematics) are left out. There are no references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.problems.formats.fields import Fields, RowError
from engine.problems.formats.reshaped import problem_of, tests_of_cases
from engine.problems.problem import Problem

FIELDS = ("prompt", "reward_model", "data_source", "ability", "extra_info")
_NAMES = {"question": "prompt", "input_output": "reward_model.ground_truth"}


def recognises(row: Mapping[str, Any]) -> bool:
    return {"prompt", "reward_model"} <= row.keys()


def problem(fields: Fields) -> Problem:
    reward = fields.json("reward_model")
    truth = reward.get("ground_truth") if isinstance(reward, dict) else None
    try:
        tests = Fields({"tests": truth}, fields.position).json("tests")
    except RowError:
        tests = None
    if isinstance(tests, list):
        tests = tests_of_cases("reward_model.ground_truth", tests)
    if not isinstance(tests, dict) or "inputs" not in tests:
        remedy = "holds no tests (`inputs` and `outputs`); only programs are run"
        raise RowError("reward_model.ground_truth", truth, remedy)
    identity = fields.id("extra_info.index", _source(fields))
    return problem_of(fields, _NAMES, identity, _question(fields), tests)


def _source(fields: Fields) -> str:
    source = fields.text_or_empty("data_source")
    return source if source.strip() else "eurus"


def _question(fields: Fields) -> str:
    prompt = fields.data.get("prompt")
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    texts = [one.get("content") for one in messages if _is_of_user(one)]
    if not texts or not isinstance(texts[-1], str) or not texts[-1].strip():
        raise RowError("prompt", prompt, "must be a text, or messages with one of the user")
    return texts[-1]


def _is_of_user(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"
