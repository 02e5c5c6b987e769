"""Tests of endpoints that speak the protocol otherwise, and of keys and proxies on the way."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from pydantic import ValidationError

from engine.config.agents import AgentConfig
from engine.config.deadlines import ENDPOINT_CONNECT
from engine.config.errors import validation_errors
from engine.config.inference import InferenceConfig
from engine.environments.opening import open_environment
from engine.events.states import NoProgram, StopReason
from engine.inference.backends import AgentRequest, BackendError
from engine.inference.dialect import Dialect, retry_after
from engine.inference.endpoint import EndpointBackend
from engine.inference.proxies import is_loopback
from engine.policy.types import Request
from engine.problems.generator import make_problem
from engine.recipes import load_recipe

TEXT = "```python\ndef double(x):\n    return 2 * x\n```"


class Endpoint:
    """Answers a request's body with what `dialect` makes of it: a status, and a content or an
    error."""

    def __init__(self, dialect):
        self.bodies, self.keys = [], []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, status, data, headers=()):
                text = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):
                endpoint.keys.append(self.headers["Authorization"])
                self.reply(200, {"data": [{"id": "m"}]})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.bodies.append(body)
                status, what, *headers = dialect(body)
                if isinstance(what, dict | bytes):
                    self.reply(status, what, headers)
                    return
                choice = {"message": {"content": what}, "finish_reason": "stop"}
                self.reply(status, {"choices": [choice], "usage": {"completion_tokens": 5}})

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


PROGRAMS = open_environment(load_recipe("demo"))


@contextmanager
def answering(dialect, **inference):
    endpoint = Endpoint(dialect)
    thread = threading.Thread(target=endpoint.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    agent = AgentConfig(name="oak", model=f"{endpoint.url}#m")
    backend = EndpointBackend(
        agent, InferenceConfig(**{"retry_seconds": 0.0, **inference}), PROGRAMS
    )
    try:
        backend.ready(ENDPOINT_CONNECT)
        yield endpoint, lambda count=1: answers(backend, count)
    finally:
        backend.close()
        endpoint.server.shutdown()
        endpoint.server.server_close()


def answers(backend, count):
    request = AgentRequest("oak", Request(make_problem(2, 1)[0]), seed=3)
    return backend.answer([request] * count, 0.7).result(60)


def error(message, **fields):
    return {"error": {"message": message, **fields}}


def reasoning(body):
    if "max_tokens" in body:
        text = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
        return 400, error(text, param="max_tokens", code="unsupported_parameter")
    if body.get("temperature", 1) != 1:
        return 400, error("invalid temperature: only 1 is allowed for this model")
    return 200, TEXT


def strict(body):
    """As servers that check with pydantic do."""
    for name in ("seed", "top_p"):
        if name in body:
            message = "Extra inputs are not permitted"
            detail = [{"loc": ["body", name], "msg": message, "type": "extra_forbidden"}]
            return 422, {"detail": detail}
    return 200, TEXT


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
    {"type": "text", "text": TEXT[:10]},
    {"type": "text", "text": TEXT[10:]},
]


@pytest.mark.parametrize(
    ("dialect", "requests", "temperature"),
    [
        (reasoning, 3, 1.0),
        (strict, 3, 0.7),
        (lambda body: (200, PARTS), 1, 0.7),
        (lambda body: (200, [TEXT]), 1, 0.7),
    ],
    ids=["reasoning", "strict", "parts", "a list of texts"],
)
def test_the_answer_of_another_dialect_is_used(dialect, requests, temperature):
    with answering(dialect) as (endpoint, ask):
        (answer,) = ask()
        assert answer.text == TEXT and "double" in answer.program
        assert answer.generation.temperature == temperature
        assert len(endpoint.bodies) == requests
        ask(2)
        assert len(endpoint.bodies) == requests + 2, "it is known by now"


def completion(**fields):
    choice = {"message": {"content": TEXT}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"completion_tokens": 5}} | fields


def events(*payloads, end="data: [DONE]\n\n"):
    lines = "".join(f"data: {json.dumps(one)}\n\n" for one in payloads)
    return f": keep-alive\n\n{lines}{end}".encode()


def delta(text, finish=None):
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


ARGUMENTS = json.dumps({"code": "def double(x):\n    return 2 * x"})
CALL = {"type": "function", "function": {"name": "python", "arguments": ARGUMENTS}}
ANSWERS = {
    "a stream": (200, events(delta(TEXT[:9]), delta(None), delta(TEXT[9:], "stop"))),
    "a stream that counts": (200, events(delta(TEXT), {"choices": [], "usage": {}}, end="")),
    "a byte order mark": (200, b"\xef\xbb\xbf" + json.dumps(completion()).encode()),
    "blanks before it": (200, b"\n \n" + json.dumps(completion()).encode()),
    "gzip": (200, gzip.compress(json.dumps(completion()).encode()), ("Content-Encoding", "gzip")),
    "no usage": (200, completion(usage=None)),
    "usage that is a list": (200, completion(usage=[3])),
    "usage without a count": (200, completion(usage={"completion_tokens": "many"})),
    "usage without an end": (200, json.dumps(completion(usage=0)).replace(
        '"usage": 0', '"usage": {"completion_tokens": 1e999}').encode()),
    "an odd end": (200, completion(choices=[{"message": {"content": TEXT}, "finish_reason": [1]}])),
    "thoughts apart": (200, completion(choices=[
        {"message": {"content": TEXT, "reasoning_content": "hm", "refusal": None}}])),
    "further choices": (200, completion(choices=[{"message": {"content": TEXT}}, None])),
}  # fmt: skip


def test_what_servers_wrap_an_answer_in_does_not_change_it():
    replies = iter(ANSWERS.values())
    with answering(lambda body: next(replies)) as (_, ask):
        for what in ANSWERS:
            (answer,) = ask()
            assert answer.text == TEXT, what
            assert answer.generation.stop == StopReason.END_OF_TEXT, what
            assert answer.generation.reported_tokens in (0, 5), what


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [CALL]},
        {"content": "", "tool_calls": [{"function": {"arguments": json.loads(ARGUMENTS)}}]},
        {"content": [], "function_call": CALL["function"]},
    ],
)
def test_a_program_in_the_call_of_a_tool_is_the_answers(message):
    choice = {"message": message, "finish_reason": "tool_calls"}
    with answering(lambda body: (200, completion(choices=[choice]))) as (_, ask):
        assert "return 2 * x" in ask()[0].text


@pytest.mark.parametrize("finish", ["length", "MAX_TOKENS", "model_length"])
def test_an_end_at_the_limit_is_known_by_every_name(finish):
    choice = {"message": {"content": None, "reasoning_content": "hm"}, "finish_reason": finish}
    with answering(lambda body: (200, completion(choices=[choice]))) as (_, ask):
        (answer,) = ask()
    assert answer.generation.stop == StopReason.MAX_TOKENS
    assert answer.no_program is NoProgram.CUT_AT_LIMIT


FAILED = {
    "no choices": (200, {"choices": []}),
    "no object": (200, b"[]"),
    "a page": (200, b"<html><body>Welcome to nginx!</body></html>"),
    "an error in a stream": (200, events(delta("a"), {"error": {"message": "lost"}})),
    "a stream whose choices are a number": (200, b'data: {"choices": 5}\n\n'),
    "a code of many digits": (200, {"error": {"message": "no", "code": "9" * 5000}}),
    "a broken stream": (200, b'data: {"choi\n\n'),
    "a deep value": (200, b'{"choices": ' + b"[" * 100_000),
    "a call without a function": (200, completion(choices=[{"message": {"tool_calls": [1]}}])),
    "a message that is a text": (200, completion(choices=[{"message": "hi"}])),
}


def test_an_answer_of_no_known_shape_ends_nothing():
    replies = iter(
        [(200, TEXT), *(one for failed in FAILED.values() for one in (failed, (200, TEXT)))]
    )
    with answering(lambda body: next(replies)) as (_, ask):
        ask()
        for what in FAILED:
            assert ask()[0].no_program is NoProgram.NO_ANSWER, what
            assert ask()[0].no_program is NoProgram.NO_ENTRY_POINT, what


def test_a_request_that_fails_to_the_end_of_its_retries_ends_nothing_if_others_are_answered():
    failing = 500, error("out of memory")
    replies = iter([(200, TEXT), failing, (200, TEXT), *[failing] * 3])
    with answering(lambda body: next(replies)) as (_, ask):
        reasons = [ask()[0].no_program for _ in range(5)]
        assert reasons[1:4:2] == [NoProgram.NO_ANSWER] * 2 and reasons[2] != NoProgram.NO_ANSWER
        with pytest.raises(BackendError, match="failed for 0 s, the last time with HTTP 500"):
            ask()
    with answering(lambda body: failing) as (_, ask), pytest.raises(BackendError, match="HTTP 500"):
        ask()


def test_a_server_that_is_gone_is_an_error_at_once():
    last = 200, completion(), ("Connection", "close")
    with answering(lambda body: last) as (endpoint, ask):
        ask()
        endpoint.server.shutdown()
        endpoint.server.server_close()
        with pytest.raises(BackendError, match="failed for 0 s"):
            ask(2)


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        ("1.5", 1.5, 1.5),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 1e9, 1e10),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        *[(odd, 0, 0) for odd in ("-3", "nan", "inf", "soon", "", "21 Oct 2099")],
    ],
)
def test_a_server_asks_to_wait_by_seconds_or_by_a_date(value, least, most):
    response = httpx.Response(429, headers={"Retry-After": value})
    assert least <= retry_after(response) <= most


def test_a_limit_that_is_too_large_is_not_renamed_and_a_temperature_not_dropped():
    message = "max_tokens must be at most 16, and temperature between 0 and 2"
    with answering(lambda body: (400, error(message, param="max_tokens"))) as (endpoint, ask):
        assert not ask()[0].program
        assert [body.keys() >= {"max_tokens", "temperature"} for body in endpoint.bodies] == [True]


@pytest.mark.parametrize(
    ("message", "is_omitted"),
    [
        ("'temperature' must be 1 here.", True),
        ("temperature must be 1.0", True),
        ("temperature must be 1", True),
        ("temperature must be 1 or unset", True),
        ("Unsupported value: 'temperature' does not support 0.7. Only the default (1) is.", True),
        ("temperature is not supported", True),
        ("temperature must be 1 or less", False),
        ("temperature must be 1, 2 or 3", False),
        ("temperature must be 1-2", False),
        ("temperature must be 1.5", False),
        ("temperature must be 10", False),
        ("Unsupported value: 'temperature' must be at most 0.5", False),
        ("0.7 is not supported: temperature must be >= 1", False),
        ("0.7 is not supported; temperature may be greater than or equal to 1", False),
    ],
)
def test_a_refusal_of_a_value_by_its_range_omits_no_setting(message, is_omitted):
    for fields in ({}, {"param": "temperature"}):
        response = httpx.Response(400, json=error(message, **fields))
        dialect = Dialect()
        assert dialect.learn(response, {"temperature": 0.7}) is is_omitted, fields
        assert dialect.temperature(0.7) == (1.0 if is_omitted else 0.7)


def test_a_refusal_of_the_name_omits_it_whatever_else_it_says():
    message = "Unsupported parameter: 'top_p'; temperature between 0 and 2 is accepted"
    dialect = Dialect()
    assert dialect.learn(httpx.Response(400, json=error(message)), {"top_p": 1.0})
    assert dialect.omitted == {"top_p"}


def test_one_answer_that_fails_is_one_without_a_program(caplog):
    confused = error("the model is confused", code="content_filter")
    refused = (400, error("refused by the policy"))
    left = iter([(200, TEXT), (200, confused), refused, (200, {"choices": []}), (200, TEXT)])
    with answering(lambda body: next(left)) as (_, ask):
        given = ask(5)
    assert [bool(answer.program) for answer in given] == [True, False, False, False, True]
    reasons = [answer.no_program for answer in given]
    other = NoProgram.NO_ENTRY_POINT  # `double` is not what the problem wants
    assert reasons == [other, *[NoProgram.NO_ANSWER] * 3, other]
    said = [record.getMessage() for record in caplog.records]
    assert "the model is confused" in said[0] and "refused by the policy" in said[1]
    assert all("counts as one without a program" in line for line in said) and len(said) == 3


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ((200, {"choices": [{"message": {"content": 5}}]}), "content is int"),
        ((400, error("no such thing")), "HTTP 400: no such thing"),
        ((200, error("overloaded", code=503)), "failed for 0 s, the last time with HTTP 200: over"),
        ((403, error("not yours")), "HTTP 403: not yours; set OPENAI_API_KEY"),
    ],
)
def test_an_endpoint_that_never_answers_is_an_error(reply, reason):
    with answering(lambda body: reply) as (_, ask), pytest.raises(BackendError, match=reason):
        ask(3)


def test_an_answer_without_text_is_no_refusal():
    with answering(lambda body: (200, "")) as (_, ask):
        assert ask()[0].no_program is NoProgram.NO_CODE


def test_an_error_in_a_200_that_may_pass_is_asked_again():
    left = iter([(200, error("overloaded", code="503")), (200, TEXT)])
    with answering(lambda body: next(left), retry_seconds=60.0) as (_, ask):
        assert ask()[0].text == TEXT


@pytest.mark.parametrize(
    "key", [" sk-acorn\r\n", "\ufeffsk-acorn", "\xa0\u200bsk-acorn\u200b\n\ufeff", "\tsk-acorn\x0b"]
)
def test_a_key_is_sent_without_what_a_file_has_around_it(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with answering(lambda body: (200, TEXT)) as (endpoint, _):
        assert endpoint.keys == ["Bearer sk-acorn"]


@pytest.mark.parametrize(
    "address", ["http://me:sk-acorn@elm.example/v1#m", "https://sk-acorn@elm/v1"]
)
def test_an_address_with_a_key_is_refused_and_not_shown(address):
    with pytest.raises(ValidationError) as refused:
        AgentConfig(name="oak", model=address)
    (fault,) = validation_errors(refused.value)
    assert "set OPENAI_API_KEY" in fault["reason"] and "acorn" not in str(fault)
    assert AgentConfig(name="oak", model="https://elm.example/v1#m@2").model.endswith("@2")


@pytest.mark.parametrize("key", ["sk-ac\norn", "sk-äcorn", "sk acorn", "sk\x01acorn"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(BackendError, match="OPENAI_API_KEY: its character") as refused:
        EndpointBackend(
            AgentConfig(name="oak", model="http://127.0.0.1:9/v1"), InferenceConfig(), PROGRAMS
        )
    assert "corn" not in str(refused.value)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "nonsense://x"])
def test_a_server_of_this_machine_is_asked_without_a_proxy(monkeypatch, proxy):
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(variable, proxy)
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    with answering(lambda body: (200, TEXT)) as (_, ask):
        assert ask()[0].text == TEXT


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "nonsense://x"])
def test_a_proxy_that_cannot_be_used_is_an_error_with_the_remedy(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(BackendError, match=r"agent oak: the proxy .*ALL_PROXY.*SOCKS: pip install"):
        EndpointBackend(
            AgentConfig(name="oak", model="https://elm.example/v1"), InferenceConfig(), PROGRAMS
        )


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("http://localhost:8000", True),
        ("http://127.3.2.1/v1", True),
        ("http://[::1]:80", True),
        ("http://api.localhost", True),
        ("http://localhost.example.org", False),
        ("http://10.0.0.1", False),
        ("https://[::2]", False),
        ("nonsense", False),
        ("http://[", False),
    ],
)
def test_addresses_of_this_machine(address, is_one):
    assert is_loopback(address) is is_one


def one_of_two(body):
    if {"temperature", "top_p"} <= body.keys():
        text = "`temperature` and `top_p` cannot both be specified for this model. Use only one."
        return 400, error(text, type="invalid_request_error")
    return 200, TEXT


def test_of_two_settings_of_which_a_server_takes_one_the_temperature_is_kept():
    with answering(one_of_two) as (endpoint, ask):
        (answer,) = ask()
        assert answer.text == TEXT and answer.generation.temperature == 0.7
        assert "top_p" not in endpoint.bodies[-1] and endpoint.bodies[-1]["temperature"] == 0.7


CUT_STREAM = b'data: {"choices": [{"index": 0, "delta": {"content": "```python"}}]}\n\n'
IN_A_CHOICE = {"error": {"code": 502, "message": "the provider failed"}, "message": {"content": ""}}


@pytest.mark.parametrize(
    ("body", "retried"),
    [
        ({"choices": [IN_A_CHOICE]}, True),
        (error("too many", code="rate_limit_exceeded"), True),
        (error("too much", type="overloaded_error"), True),
        (CUT_STREAM, False),
    ],
    ids=["an error in a choice", "a rate limit", "an overload", "a stream that was cut"],
)
def test_a_200_without_an_answer_is_none(body, retried):
    """What was written before an answer broke off is no program of the model."""
    replies = [(200, body), (200, TEXT)]
    with answering(lambda _: replies.pop(0), retry_seconds=60.0) as (endpoint, ask):
        (answer,) = ask()
        assert answer.text == (TEXT if retried else "")
        assert retried or answer.no_program == NoProgram.NO_ANSWER
        assert len(endpoint.bodies) == (2 if retried else 1)
