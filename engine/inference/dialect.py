"""What one OpenAI-compatible server calls the settings of a request, and which it refuses.

Servers of reasoning models want `max_completion_tokens` for `max_tokens` and take no temperature;
others know no seed or no top_p. A server says so in the 400 with which it refuses a request.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

_REFUSES_A_SETTING = {400, 422}
_RENAMED = {"max_tokens": "max_completion_tokens"}
_OMITTED = ("temperature", "top_p", "seed", "top_k", "min_p")
_REFUSES_NAME = re.compile(
    r"unsupported[ _]parameter|unknown|unrecognized|unexpected|not permitted|deprecated|"
    r"extra (inputs|fields)",
    re.IGNORECASE,
)
_REFUSES_VALUE = re.compile(
    r"unsupported|not supported|does not support|only the default|"
    r"(only|must be) 1(\.0+)?(?!\.?\d|\s*(-|–|to|or|,)\s*\d)",
    re.IGNORECASE,
)
"""Said of a setting that may have one value only, and of a value out of its range."""
_RANGE = re.compile(
    r"\b(between|range|maximum|minimum|at (most|least)|up to|"
    r"or (equal|(less|lower|smaller|fewer|below|under|more|higher|greater|larger|above|over)\b)|"
    r"(less|lower|smaller|fewer|more|higher|greater|larger) than)\b|[<>≤≥]",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\b(?:cannot|can't|can not|not) both\b|\bonly one of\b", re.IGNORECASE)
"""Said of temperature and top_p by servers that take one of the two."""
_DONE = "[DONE]"
DEFAULT_TEMPERATURE = 1.0
"""Of servers that take none."""


class Dialect:
    """What a server has refused so far."""

    def __init__(self) -> None:
        self.renamed: dict[str, str] = {}
        self.omitted: set[str] = set()

    def body(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a request as this server wants it."""
        named = {self.renamed.get(name, name): value for name, value in request.items()}
        return {name: value for name, value in named.items() if name not in self.omitted}

    def temperature(self, requested: float) -> float:
        """Returns the temperature at which this server answers."""
        return DEFAULT_TEMPERATURE if "temperature" in self.omitted else requested

    def learn(self, response: httpx.Response, sent: Mapping[str, Any]) -> bool:
        """Returns whether a response refuses a setting of the request that was sent, so that the
        same request, in the words that are now known, is worth sending again."""
        if response.status_code not in _REFUSES_A_SETTING:
            return False
        name = _refused_setting(response, sent)
        if name in _RENAMED:
            self.renamed[name] = _RENAMED[name]
        elif name in _OMITTED:
            self.omitted.add(name)
        else:
            return False
        return True


def error_of(response: httpx.Response) -> dict[str, Any]:
    """Returns `message`, `code` and `param` of the error that a response reports, in whichever way;
    empty if it reports none. A 200 may report one too."""
    try:
        data = body_of(response)
    except ValueError:
        return {} if response.is_success else {"message": response.text}
    if not isinstance(data, dict):
        return {} if response.is_success else {"message": json.dumps(data)}
    error = data.get("error") or _error_of_choice(data)
    if error is None and not response.is_success:
        error = data.get("detail") or data
    if not error:
        return {}
    if not isinstance(error, dict):
        return {"message": error if isinstance(error, str) else json.dumps(error)}
    return {**error, "message": str(error.get("message") or json.dumps(error))}


def _error_of_choice(data: dict[str, Any]) -> Any:
    """Returns the error of the first choice, where routers report that of a provider; else None."""
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("error") if isinstance(first, dict) else None


def body_of(response: httpx.Response) -> Any:
    """Returns the JSON of a response; of a stream, which some servers send though none was
    requested, the completion that its events make up.

    Raises:
        ValueError: it is neither.
    """
    try:
        try:
            return response.json()
        except ValueError:
            lines = response.text.split("\n")
            events = [line[5:].strip() for line in lines if line.startswith("data:")]
            if not events:
                raise
        given = [json.loads(event) for event in events if event and event != _DONE]
        whole = _assembled(given)
        if _DONE not in events and _is_cut_off(whole, given):
            raise ValueError("the stream ended inside the answer")
        return whole
    except RecursionError:
        raise ValueError("its values nest too deep") from None


def _is_cut_off(completion: dict[str, Any], events: list[Any]) -> bool:
    """Returns whether the last event of a stream holds a part of an answer that has no end."""
    if completion.get("error") or not events or not events[-1].get("choices"):
        return False
    return completion["choices"][0]["finish_reason"] is None


def _assembled(events: Iterable[Any]) -> dict[str, Any]:
    """Returns the completion that the events of a stream make up, or the one that is an error."""
    text, finish, usage = "", None, None
    for event in events:
        if not isinstance(event, dict):
            raise ValueError("an event of the stream is no object")
        if event.get("error"):
            return event
        usage = event.get("usage") or usage
        choices = event.get("choices") or []
        if not isinstance(choices, list):
            raise ValueError("the choices of an event of the stream are no list")
        for choice in choices:
            if not isinstance(choice, dict) or choice.get("index") not in (0, None):
                continue
            text += _written(choice.get("delta") or choice.get("message") or {})
            finish = choice.get("finish_reason") or finish
    choice = {"message": {"content": text}, "finish_reason": finish}
    return {"choices": [choice], "usage": usage}


def _written(message: Any) -> str:
    try:
        return text_of(message["content"]) if "content" in message else ""
    except TypeError as error:
        raise ValueError(str(error)) from None


_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "token_limit"})
"""What servers call the end of an answer at its limit of tokens."""


def is_cut(finish: Any) -> bool:
    """Returns whether a finish reason says that the answer ended at a limit of tokens."""
    return isinstance(finish, str) and finish.lower() in _CUT


def tokens_of(usage: Any) -> int:
    """Returns the tokens of an answer by the server's count; 0 if it gives none, or no count."""
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**31
    return count if is_count else 0


def answer_of(choice: Any) -> str:
    """Returns the text of a choice: its message's content, else the arguments of the tools that it
    calls, in which a model may put its program.

    Raises:
        LookupError, TypeError, AttributeError: it is no choice.
    """
    message = choice["message"]
    if text := text_of(message.get("content")):
        return text
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    calls += [message["function_call"]] if message.get("function_call") else []
    arguments = (call.get("arguments") for call in calls)
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in arguments)


def retry_after(response: httpx.Response) -> float:
    """Returns the seconds of Retry-After, a number or a date; 0 without the header."""
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def text_of(content: Any) -> str:
    """Returns the text of a message's content: a string, null, or a list of parts, of which those
    that are no text (thoughts, pictures) are left out.

    Raises:
        TypeError: it is none of these.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError(f"content is {type(content).__name__}")
    parts = (one if isinstance(one, str) else _text_of_part(one) for one in content)
    return "".join(parts)


def _text_of_part(part: Any) -> str:
    if not isinstance(part, dict):
        raise TypeError(f"a part of the content is {type(part).__name__}")
    text = part.get("text") if part.get("type", "text") in ("text", "output_text") else None
    return text if isinstance(text, str) else ""


def _refused_setting(response: httpx.Response, sent: Mapping[str, Any]) -> str:
    """Returns the name of the setting in `sent` that a response refuses; "" if it names none."""
    error = error_of(response)
    message = error.get("message", "")
    said = f"{error.get('code')} {message}"
    if _BOTH.search(message) and "top_p" in sent and {"temperature", "top_p"} <= _named_in(message):
        return "top_p"
    is_of_name = _REFUSES_NAME.search(said)
    if not is_of_name and not _REFUSES_VALUE.search(said):
        return ""
    # "max_tokens is too large" is no refusal of its name.
    known = [new for new in _RENAMED.values() if re.search(rf"\b{new}\b", message)]
    for name in (old for old, new in _RENAMED.items() if new in known):
        if name in sent:
            return name
    if not is_of_name and _RANGE.search(message):
        return ""  # of a value: another one of the same setting is accepted
    if isinstance(named := error.get("param"), str) and named in sent:
        return named
    return next((one for one in _OMITTED if one in sent and re.search(rf"\b{one}\b", message)), "")


def _named_in(message: str) -> set[str]:
    return {one for one in _OMITTED if re.search(rf"\b{one}\b", message)}
