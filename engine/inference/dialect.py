"""What one OpenAI-compatible server calls the settings of a request, and which it refuses.

Servers of reasoning models want `max_completion_tokens` for `max_tokens` and take no temperature;
others know no seed or no top_p. A server says so in the 400 with which it refuses a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
        data = response.json()
    except ValueError:
        return {} if response.is_success else {"message": response.text}
    if not isinstance(data, dict):
        return {} if response.is_success else {"message": json.dumps(data)}
    error = data.get("error")
    if error is None and not response.is_success:
        error = data.get("detail") or data
    if not error:
        return {}
    if not isinstance(error, dict):
        return {"message": error if isinstance(error, str) else json.dumps(error)}
    return {**error, "message": str(error.get("message") or json.dumps(error))}


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
