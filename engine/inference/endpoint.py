"""Answer backend for OpenAI-compatible HTTP endpoints (vLLM, SGLang, llama.cpp, hosted ones).

Invariants: every wait ends, by `request_seconds`, by the deadline of the retries, or at once when
the backend is closed; a server's response is data, and errors quote the server's own message.
Requests run on an event loop in the backend's thread: a pending request can be cancelled there,
which it could not be in a thread of its own.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import httpx

from engine.config.agents import AgentConfig
from engine.config.deadlines import ENDPOINT_CLOSE, ENDPOINT_CONNECT, Deadline
from engine.config.inference import InferenceConfig
from engine.environments.types import Environment, Message, Written
from engine.events.states import NoProgram, StopReason
from engine.inference.backends import AgentRequest, BackendError
from engine.inference.connecting import connected, secret_of
from engine.inference.dialect import (
    Dialect,
    answer_of,
    body_of,
    error_of,
    is_cut,
    retry_after,
    tokens_of,
)
from engine.policy.types import Answer, Generation

KEY_VARIABLE = "OPENAI_API_KEY"
_TOO_LONG = {400, 413, 422}
_RETRIED = {408, 409, 425, 429}
_NOT_RETRIED = {501, 505}
_OF_THE_SERVER = {401, 403, 404, 405, 501, 505}
"""Status codes of server errors that no retry can cure, and of refusals of any request."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_SHOWN_CHARS = 300
_DIGITS_OF_STATUS = 3
_BUSY = frozenset({"rate_limit_exceeded", "rate_limit_error", "overloaded_error"})
"""What servers call 429 in the error that a 200 reports."""
_MOST_FAILED, _MOST_FAILED_AT_FIRST = 20, 3
"""Answers in a row that may fail before the agent does, and so many if none has succeeded yet."""
_MOST_GIVEN_UP = 3
"""Requests in a row that may be given up after all their retries, once the server has answered."""

logger = logging.getLogger(__name__)


class _GaveUp(BackendError):
    """Raised for a request that failed to the end of its retries."""

    def __init__(self, message: str, since: float, is_gone: bool):
        super().__init__(message)
        self.since = since
        """Of its first failure; of the monotonic clock."""
        self.is_gone = is_gone
        """Whether no server accepts connections."""


Result = TypeVar("Result")


class EndpointBackend:
    """Backend for one model of one server; sends several requests at once, each with retries."""

    requests_per_call = 1

    def __init__(self, agent: AgentConfig, inference: InferenceConfig, environment: Environment):
        self.agent = agent
        self._environment = environment
        self.calls_at_once = inference.requests_at_once
        self.url, _, self.model = agent.model.partition("#")
        self.url = self.url.rstrip("/")
        self._request_seconds = inference.request_seconds
        self._retry_seconds = inference.retry_seconds
        self._dialect = Dialect()
        self._failed_in_a_row, self._given_up_in_a_row = 0, 0
        self._answered_at: float | None = None
        try:
            key = secret_of(KEY_VARIABLE)
            self._client = connected(
                httpx.AsyncClient,
                self.url,
                headers={"Authorization": f"Bearer {key}"} if key else {},
                timeout=httpx.Timeout(inference.request_seconds, connect=ENDPOINT_CONNECT.seconds),
                limits=httpx.Limits(max_connections=inference.requests_at_once),
            )
        except ValueError as error:
            raise BackendError(f"agent {agent.name}: {error}") from None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=f"agent {agent.name}", daemon=True
        )
        self._thread.start()

    def ready(self, deadline: Deadline) -> None:
        """Queries the server for its models and checks the agent's model name.

        Raises:
            BackendError: the server is unreachable, refuses the key, or does not have the model.
        """
        try:
            models = self._begin(self._models()).result(deadline.seconds)
        except TimeoutError:
            late = f"did not list its models within {deadline.seconds:g} s; {deadline.remedy}"
            raise self._error(late) from None
        if models is None:  # not every server lists them; then the settings must name one
            models = [self.model] if self.model else []
        if not self.model and len(models) == 1:
            self.model = models[0]
        if self.model not in models:
            listed = ", ".join(models) or "none that it lists"
            raise self._error(f"has the models {listed}; name one after a #")

    def answer(
        self, batch: Sequence[AgentRequest], temperature: float | None
    ) -> Future[list[Answer]]:
        return self._begin(self._answers(batch, temperature))

    def too_long(self, statements: Sequence[str]) -> dict[int, str]:
        return {}  # a server alone knows its tokenizer and its limit

    def close(self) -> None:
        """Cancels all requests in flight."""
        seconds = ENDPOINT_CLOSE.seconds
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(seconds)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(seconds)
        self._loop.close()

    def _begin(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _end(self) -> None:
        open_ = asyncio.all_tasks() - {asyncio.current_task()}
        for task in open_:
            task.cancel()
        await asyncio.gather(*open_, return_exceptions=True)
        await self._client.aclose()

    async def _answers(
        self, batch: Sequence[AgentRequest], temperature: float | None
    ) -> list[Answer]:
        return [await self._answered(item, temperature) for item in batch]

    async def _answered(self, item: AgentRequest, temperature: float | None) -> Answer:
        request = item.request
        prompts = list(self._environment.messages(request, self.agent.role))
        started = time.perf_counter()
        for prompt, shorter in zip(prompts, [*prompts[1:], None], strict=True):
            response = await self._completion(prompt, temperature, item.seed)
            if response is not None and response.status_code in _TOO_LONG and shorter:
                continue  # use the fullest prompt that fits; only the server can count its tokens
            break
        seconds = time.perf_counter() - started
        used = self._dialect.temperature(self._temperature(temperature))
        return self._read(response, request.task, prompt, seconds, used)

    async def _completion(
        self, prompt: list[Message], temperature: float | None, seed: int | None
    ) -> httpx.Response | None:
        """Returns the server's response to a prompt; None if the request was given up, and this
        answer counts as one without a program."""
        sampling = self.agent.sampling
        body = {
            "model": self.model,
            "messages": prompt,
            "temperature": self._temperature(temperature),
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_new_tokens,
        }
        # vLLM's own fields, which a server that knows only those of OpenAI would refuse.
        extra = {
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "chat_template_kwargs": dict(self.agent.template_options),
        }
        body |= {name: value for name, value in extra.items() if value}
        if seed is not None:
            body["seed"] = seed
        url = self._path("chat/completions")
        while True:
            sent = self._dialect.body(body)
            try:
                response = await self._with_retries(partial(self._client.post, url, json=sent))
            except _GaveUp as error:
                self._note_given_up(error)
                return None
            if not self._dialect.learn(response, sent):
                return response

    def _temperature(self, override: float | None) -> float:
        return self.agent.sampling.temperature if override is None else override

    async def _with_retries(
        self, send: Callable[[], Coroutine[Any, Any, httpx.Response]]
    ) -> httpx.Response:
        """Returns the server's final response; retries transient failures with backoff.

        Raises:
            BackendError: the request still failed `retry_seconds` after its first failure.
        """
        since, pause = None, _FIRST_PAUSE
        while True:
            server_wait, is_gone = 0.0, False
            try:
                async with asyncio.timeout(self._request_seconds):
                    response = await send()
                if not _may_pass(_status_of(response)):
                    return response
                cause, server_wait = self._status_text(response), retry_after(response)
            except TimeoutError:
                cause = f"no answer within {self._request_seconds:.0f} s"
            except httpx.ConnectTimeout:
                cause = f"ConnectTimeout: {ENDPOINT_CONNECT.passed}"
            except (httpx.TransportError, httpx.DecodingError) as error:
                cause = f"{type(error).__name__}: {error}".rstrip(": ")
                is_gone = isinstance(error, httpx.ConnectError)
            now = time.monotonic()
            since = since or now
            left = since + self._retry_seconds - now
            if left <= 0:
                reason = (
                    f"failed for {self._retry_seconds:.0f} s, the last time with {cause}; see "
                    "whether the server is up, or raise inference.retry_seconds"
                )
                raise _GaveUp(str(self._error(reason)), since, is_gone)
            wait = max(server_wait, pause * random.uniform(0.5, 1.0))  # nosec B311
            await asyncio.sleep(min(wait, left))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _read(
        self,
        response: httpx.Response | None,
        task: Any,
        prompt: list[Message],
        seconds: float,
        temperature: float,
    ) -> Answer:
        text, tokens, was_cut = "", 0, False
        is_answer = False
        if response is not None:
            try:
                text, tokens, was_cut = self._completed(response)
                is_answer = True
                self._failed_in_a_row, self._given_up_in_a_row = 0, 0
                self._answered_at = time.monotonic()
            except BackendError as error:
                self._note_failure(error, response)
        generation = Generation(
            prompt_ids=[],
            output_ids=[],
            logprobs=[],
            stop=StopReason.MAX_TOKENS if was_cut else StopReason.END_OF_TEXT,
            policy_version=0,
            seconds=seconds,
            temperature=temperature,
            reported_tokens=tokens,
        )
        # Half a surrogate pair, which JSON can hold, cannot be encoded in any file.
        text = text.encode("utf-8", "replace").decode()
        action = self._environment.read(task, Written(text, is_cut=generation.is_cut))
        reason = action.fault if is_answer else NoProgram.NO_ANSWER
        return Answer(generation, action.text, text, tuple(prompt), no_program=reason)

    def _completed(self, response: httpx.Response) -> tuple[str, int, bool]:
        """Returns text and tokens of a chat completion, and whether it ended at a limit.

        Raises:
            BackendError: the response is none.
        """
        if not response.is_success or error_of(response):
            raise self._error(f"answered {self._status_text(response)}{self._remedy(response)}")
        try:
            data = body_of(response)
            choice = data["choices"][0]
            text = answer_of(choice)
            return text, tokens_of(data.get("usage")), is_cut(choice.get("finish_reason"))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._error(
                f"answered no chat completion ({type(error).__name__}: {error}); "
                "give the base of an OpenAI-compatible API, which mostly ends in /v1"
            ) from None

    def _note_failure(self, error: BackendError, response: httpx.Response) -> None:
        """Goes on after an answer that failed, as one without text; raises the error if no other
        answer would fare better."""
        self._failed_in_a_row += 1
        most = _MOST_FAILED if self._answered_at else _MOST_FAILED_AT_FIRST
        if response.status_code in _OF_THE_SERVER or self._failed_in_a_row >= most:
            raise error
        logger.warning("%s; this answer counts as one without a program", error)

    def _note_given_up(self, error: _GaveUp) -> None:
        """Goes on after a request that was given up if the server answers others; raises the error
        if it does not."""
        self._given_up_in_a_row += 1
        if self._answered_at is None or (
            self._answered_at < error.since
            and (error.is_gone or self._given_up_in_a_row >= _MOST_GIVEN_UP)
        ):
            raise error
        logger.warning("%s; this answer counts as one without a program", error)

    async def _models(self) -> list[str] | None:
        """Returns the names of the server's models; None if it does not list them."""
        response = await self._with_retries(self._list)
        if response.status_code in (404, 405, 501):
            return None
        if not response.is_success:
            raise self._error(f"answered {self._status_text(response)}{self._remedy(response)}")
        try:
            return [str(model["id"]) for model in response.json()["data"]]
        except (ValueError, LookupError, TypeError):
            return None

    async def _list(self) -> httpx.Response:
        try:
            return await self._client.get(self._path("models"))
        except httpx.TransportError as error:  # not retried: most often the address is wrong
            reason = str(error) or type(error).__name__
            raise self._error(
                f"cannot be reached: {reason}; start it, or correct the address"
            ) from None
        except (httpx.InvalidURL, ValueError) as error:
            raise self._error(f"is no address: {error}") from None

    def _path(self, path: str) -> str:
        return f"{self.url}/{path}"

    def _error(self, what: str) -> BackendError:
        return BackendError(f"agent {self.agent.name}: the endpoint {self.agent.model} {what}")

    def _status_text(self, response: httpx.Response) -> str:
        text = " ".join(str(error_of(response).get("message", "")).split())
        return f"HTTP {response.status_code}: {text[:_SHOWN_CHARS]}"

    def _remedy(self, response: httpx.Response) -> str:
        if response.status_code in (401, 403):
            return f"; set {KEY_VARIABLE} to a key that it accepts"
        if response.status_code == 404:
            return "; look at the address, which mostly ends in /v1, and at the model's name"
        return ""


def _status_of(response: httpx.Response) -> int:
    """Returns the status of a response, or the one in the error that a 200 reports."""
    error = error_of(response) if response.is_success else {}
    code = str(error.get("code", ""))
    if code in _BUSY or error.get("type") in _BUSY:
        return 429
    is_status = len(code) == _DIGITS_OF_STATUS and code.isascii() and code.isdecimal()
    return int(code) if is_status else response.status_code


def _may_pass(status: int) -> bool:
    """Whether a failure is transient, so that a retry may succeed."""
    return status in _RETRIED or (status >= 500 and status not in _NOT_RETRIED)
