"""Chat templates, rendered by a process with limits (`template_process`).

Invariant: no template is compiled or run in the process that needs its text, which receives either
a bounded text or an error. All templates of a process share one renderer; it is started at the
first rendering, replaced after it was killed, and ends with the process that started it.

Waits: for the renderer, whose limits of processor and wall time end every rendering.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.config.deadlines import TEMPLATE_END
from engine.resources.model_files.template_limits import (
    KILLED,
    MOST_CHARACTERS,
    OUT_OF_MEMORY,
    most_output,
)

_ROOT = Path(__file__).resolve().parents[3]
_MODULE = "engine.resources.model_files.template_process"
_INHERITED = ("LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TZ")
"""Variables by which Python starts; of the time zone a template learns by `strftime_now`."""
REMEDY = "give a template that writes each message about once"

Message = Mapping[str, Any]


class TemplateFailed(ValueError):
    """The template has an error, or raises one for this conversation."""


class TemplateTooLarge(TemplateFailed):
    """The template exceeds a limit."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what, self.remedy = what, REMEDY

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


class _Renderer:
    """A connection to the process; not for concurrent use."""

    def __init__(self) -> None:
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                cwd=_ROOT,
                env={**inherited, "LC_ALL": "C.UTF-8"},
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
            )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the reply.

        Raises:
            TemplateTooLarge: a limit of the system ended the process.
            RuntimeError: it ended by itself.
        """
        reply = bytearray()
        with suppress(ConnectionError):
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while not reply.endswith(b"\n") and (part := self._socket.recv(1 << 16)):
                reply += part
        if reply.endswith(b"\n"):
            return json.loads(reply)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(TEMPLATE_END.seconds)
        status = self._process.returncode
        if status is None or status < 0 or status == OUT_OF_MEMORY:
            raise TemplateTooLarge(KILLED)
        raise RuntimeError(f"{sys.executable} -m {_MODULE} ended with exit status {status}")

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Lets go of the process of another process."""
        self._socket.close()
        self._process.returncode = 0  # or it would be waited for


_lock = threading.Lock()
_renderer: _Renderer | None = None


def _reply_to(request: dict[str, Any]) -> dict[str, Any]:
    global _renderer
    with _lock:
        if _renderer is not None and not _renderer.is_alive():
            _close()
        _renderer = _renderer or _Renderer()
        try:
            return _renderer.ask(request)
        except BaseException:  # an interrupted one would give the next request this reply
            _close()
            raise


@atexit.register
def _close() -> None:
    global _renderer
    if _renderer is not None:
        _renderer.close()
        _renderer = None


def _after_fork() -> None:
    """A forked child starts a renderer of its own."""
    global _lock, _renderer
    _lock = threading.Lock()
    if _renderer is not None:
        _renderer.forget()
        _renderer = None


os.register_at_fork(after_in_child=_after_fork)


def render(
    template: str,
    messages: Sequence[Message],
    tokens: Mapping[str, str],
    *,
    add_generation_prompt: bool,
    now: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Returns the text that `apply_chat_template` of transformers renders; `tokens` are the
    tokenizer's special tokens by name (`bos_token`), `now` the local time in ISO 8601 that
    `strftime_now` writes (default: that of the rendering), `options` further variables by name.

    Raises:
        TemplateFailed: the template's error, `TemplateTooLarge` if it exceeds a limit.
        RuntimeError, OSError: the renderer cannot run.
    """
    if len(template) > MOST_CHARACTERS:
        raise TemplateTooLarge(
            f"has {len(template):,} characters, at most {MOST_CHARACTERS:,} are accepted"
        )
    request = {
        "template": template,
        "messages": list(messages),
        "tokens": dict(tokens),
        "add_generation_prompt": add_generation_prompt,
        "most_output": most_output(messages),
        "now": now,
        "options": dict(options or {}),
    }
    reply = _reply_to(request)
    if "text" in reply:
        return reply["text"]
    if reply["exceeds"]:
        raise TemplateTooLarge(reply["error"])
    raise TemplateFailed(reply["error"])


_QUESTION = "What is 1 + 1?"
_USER = {"role": "user", "content": f"{_QUESTION}\nAnswer with one complete program."}
_ANSWER = {"role": "assistant", "content": "```python\ndef solve():\n    return 2\n```"}
_SYSTEM = {"role": "system", "content": "You write programs."}
_SAMPLES = (
    ([_USER], True),
    ([_SYSTEM, _USER], True),
    ([_USER, _ANSWER], False),
    ([_SYSTEM, _USER, _ANSWER, _USER], True),
)
"""Conversations, with or without the beginning of an answer: what agents and reward models send."""


def check_template(
    template: str, tokens: Mapping[str, str] = MappingProxyType({})
) -> TemplateFailed | None:
    """Renders sample conversations, in search of limits that the template exceeds. Its other errors
    may be right (many refuse a system message) and are reported where a conversation has them;
    returns the first if it fails for all samples, and a failure if none of them shows what its user
    says.

    Raises:
        TemplateTooLarge: with one of the samples.
    """
    failures, says = [], False
    for messages, add_generation_prompt in _SAMPLES:
        try:
            text = render(template, messages, tokens, add_generation_prompt=add_generation_prompt)
            says = says or _QUESTION in text
        except TemplateTooLarge:
            raise
        except TemplateFailed as error:
            failures.append(error)
    if len(failures) == len(_SAMPLES):
        return failures[0]
    return None if says else TemplateFailed("writes nothing of what the user says")


def has_template(config: Mapping[str, Any]) -> bool:
    """Returns whether a tokenizer_config.json holds a template for conversations: a text, or the
    one named `default` of several."""
    return _default_text(config) is not None


def default_failure(config: Mapping[str, Any]) -> TemplateFailed | None:
    """Returns why the template of a checked tokenizer_config.json fails for every sample."""
    text = _default_text(config)
    return None if text is None else check_template(text, special_tokens(config))


def _default_text(config: Mapping[str, Any]) -> str | None:
    given = config.get("chat_template")
    rows = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    named = {one["name"]: one.get("template") for one in rows if isinstance(one.get("name"), str)}
    text = named.get("default") if isinstance(given, list) else given
    return text if isinstance(text, str) and text else None


def check_template_file(file: Path, config: Mapping[str, Any]) -> None:
    """Checks a chat_template.jinja; `config` is the tokenizer_config.json beside it.

    Raises:
        TemplateTooLarge: as `check_template`.
    """
    with file.open("rb") as content:  # the first part of a longer one is too long as well
        text = content.read(4 * MOST_CHARACTERS + 4).decode("utf-8", "replace")
    check_template(text, special_tokens(config))


def check_config_templates(config: Mapping[str, Any]) -> None:
    """Checks the templates in a tokenizer_config.json.

    Raises:
        TemplateTooLarge: as `check_template`.
    """
    for text in _texts(config.get("chat_template")):
        check_template(text, special_tokens(config))


def _texts(given: Any) -> list[str]:
    """Texts of a `chat_template`: one, or a list of objects with name and template."""
    rows = given if isinstance(given, list) else [{"template": given}]
    texts = [row.get("template") for row in rows if isinstance(row, dict)]
    return [text for text in texts if isinstance(text, str)]


def special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the special tokens that a tokenizer_config.json gives, by name."""
    tokens = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            tokens[name] = text
    return tokens
