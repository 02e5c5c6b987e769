"""Rollout traces of TRL and Trackio, as rollouts (`rollouts`). Pure.

- TRL's completions, which `log_completions` writes and pandas turns into JSON lines: `prompt`,
  `completion`, `step`, `advantage`, and a column for each reward function. Their sum is the reward;
  columns that are not numbers are left out.
- Trackio's traces: the `messages` of a chat, and `metadata` with its `reward`, and `step`, `agent`
  and `tokens` if it has them. What comes before the first answer is the problem. Each answer is a
  node below the one before it, begins with what came in between, and has the reward of its trace;
  the tokens are the last one's. As Trackio exports it, a trace has its `step` itself, the tokens in
  its `summary`, and no reward if its metadata have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_OF_TRL = {"step", "prompt", "completion", "advantage"}
_ANSWER = "assistant"
_KEPT = ("step", "agent")
_OF_EXPORT = "run_id"
"""Field of a trace that Trackio exported."""


class NoTrace(ValueError):
    """Raised for a trace that cannot be used; `field` and `value` are what is wrong with it."""

    def __init__(self, field: str, value: Any, reason: str):
        self.field, self.value, self.reason = field, value, reason
        super().__init__(reason)


def rollouts_in(row: Mapping[str, Any], line: int) -> Iterator[Mapping[str, Any]]:
    """Yields the rollouts of a JSON object: itself, unless it is a trace. Raises `NoTrace`."""
    if "problem" in row:
        yield row
    elif "messages" in row:
        yield from _of_trackio(row, line)
    elif "prompt" in row and "completion" in row:
        yield _of_trl(row)
    else:
        yield row


def _of_trl(row: Mapping[str, Any]) -> Mapping[str, Any]:
    parts = [one for name, one in row.items() if name not in _OF_TRL and _is_number(one)]
    made: dict[str, Any] = {
        "problem": _text("prompt", row["prompt"]),
        "text": _text("completion", row["completion"]),
        "reward": sum(parts) if parts else None,
    }
    return made | {name: row[name] for name in ("step", "advantage") if row.get(name) is not None}


def _of_trackio(row: Mapping[str, Any], line: int) -> Iterator[Mapping[str, Any]]:
    messages, about = row["messages"], row.get("metadata") or {}
    if not isinstance(about, Mapping) or ("reward" not in about and _OF_EXPORT not in row):
        raise NoTrace("metadata", about, "it has no reward: give a number, or null")
    _text("messages", messages)
    answers = [n for n, one in enumerate(messages) if one.get("role") == _ANSWER]
    if not answers:
        raise NoTrace("messages", len(messages), f"none of them has the role {_ANSWER}")
    problem = _text("messages", messages[: answers[0]])
    kept = {name: about.get(name, row.get(name)) for name in _KEPT}
    kept = {name: one for name, one in kept.items() if one is not None}
    begin, parent = answers[0], None
    for turn, end in enumerate(answers, 1):
        key = f"{line}.{turn}"
        counted = {"tokens": _tokens(row, about)} if end == answers[-1] else {}
        yield {
            **kept, **counted, "problem": problem,
            "text": _text("messages", messages[begin : end + 1]),
            "reward": about.get("reward"), "id": key, "parent": parent,
        }  # fmt: skip
        begin, parent = end + 1, key


def _tokens(row: Mapping[str, Any], about: Mapping[str, Any]) -> Any:
    summary = row.get("summary")
    summary = summary if isinstance(summary, Mapping) else {}
    counted = about.get("tokens", summary.get("output_tokens"))
    return 0 if counted is None else counted


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(field: str, content: Any) -> str:
    """Returns a text, or messages of a chat as one. Raises `NoTrace` for anything else."""
    if isinstance(content, str):
        return content
    is_list = isinstance(content, Sequence)
    if not is_list or not all(isinstance(one, Mapping) for one in content):
        raise NoTrace(field, content, "give a text, or a list of messages with role and content")
    shown = [_message(field, one) for one in content]
    if len(shown) == 1:
        return shown[0]
    return "\n\n".join(
        f"{one.get('role', '')}: {text}" for one, text in zip(content, shown, strict=True)
    )


def _message(field: str, message: Mapping[str, Any]) -> str:
    """Returns what a message says, and below it the tools that it calls."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        calls = []
    lines = [_content(field, message.get("content")), *map(_call, calls)]
    return "\n".join(line for line in lines if line)


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return "[a tool]"
    return f"[{function.get('name', '')}({function.get('arguments', '')})]"


def _content(field: str, content: Any) -> str:
    if isinstance(content, str):
        return content
    if content is None:  # of a message that only calls a tool
        return ""
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(one, Mapping) for one in parts):
        raise NoTrace(field, content, "give the content of a message as a text, or as parts")
    return "\n".join(str(one.get("text", f"[{one.get('type', 'part')}]")) for one in parts)
