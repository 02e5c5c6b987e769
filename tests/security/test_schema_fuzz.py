"""Fuzz tests with malformed values for everything that the OpenAPI document describes.

Each request malforms one parameter or field of an operation. Every response is one that the
document declares, no server error, and each refusal is problem details.
"""

import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.test import Client

from tests.helpers.large import large_but
from webapp.config.api import api

DEEP = 20_000
NASTY_JSON = (
    "null", "true", "0", "-1", "1.5", "1e400", "-1e400", "NaN", "Infinity", "-Infinity",
    str(2**31), str(2**63), str(10**30), "9" * 5000, "-0", "[]", "{}", "[[]]", '[{"a": [null]}]',
    '{"": ""}', '""', '"x"', '"\\u0000"', '"\\ud800"', '"\\udc00x"', '"\u0663"', '"\u202e"', '"1"',
    '"inf"', '"nan"', '"../../etc/passwd"', '"%s"' % ("x" * 100_000), '"\\r\\nSet-Cookie: a=b"',
    "[" * 500 + "]" * 500, '{"a":' * 500 + "1" + "}" * 500,
)  # fmt: skip
NASTY_TEXT = (
    "", "0", "-1", "1.5", "1e9", "NaN", "inf", "null", "true", str(2**31), str(2**63),
    str(10**30), "9" * 5000, "x", "\x00", "\u0663", "\u202e", "\ud800", "%", "x" * 5000, "[]",
    "{}", "a_b", "0001-01-01T00:00:00+23:59_00000000-0000-0000-0000-000000000000",
    "9999-12-31T23:59:59-23:59_00000000-0000-0000-0000-000000000000",
    "2026-01-01T00:00:00+00:00_x", "2026-01-01T00:00:00_00000000-0000-0000-0000-000000000000",
)  # fmt: skip
NASTY_BODIES = (
    b"", b"null", b"[]", b"1", b'"x"', b"{", b"{}}", b"\xff\xfe\x00", b"\xef\xbb\xbf{}",
    '{"project": 1}'.encode("utf-16"), b"[" * DEEP, b'{"a":' * DEEP, b"\x00" * 1000,
    b'{"project": 1, "project": 2}', b'{"overrides": {"a": 1, "a": 2}}', b"9" * 10_000,
    b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1", b"a=%ff&b=%00", b" " * 3_000_000,
)  # fmt: skip
MISNAMED = NASTY_BODIES[3:9]
"""Operations that also accept a content type other than JSON."""
CONTENT_TYPES = (
    "application/json", "text/plain", "", "multipart/form-data", "application/xml",
    "multipart/form-data; boundary=x", "multipart/form-data; boundary=\u00e9",
    "application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-7",
    "application/json; charset=nonsense",
)  # fmt: skip
PATHS = (
    "training.steps", "training.minutes", "problems.seed", "problems.dataset", "problems.train",
    "problems.format", "agents", "agents.0.model", "agents.oak.role", "agents.\u00b2", "agents.-1",
    "loss.kl_coefficient", "compute.ray_address", "recipe",
)  # fmt: skip
NOWHERE = ("", ".", "\x00", "\ud800", "a." * 5000 + "a", "agents." + "9" * 5000)
"""Not a setting's path: it is refused before its value is checked."""

Operation = tuple[str, str, dict[str, Any]]


def operations() -> list[Operation]:
    """(path, method, operation) of the whole document."""
    paths = api.get_openapi_schema()["paths"]
    return [(path, method, op) for path, ops in paths.items() for method, op in ops.items()]


@pytest.fixture
def alice(cast) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(cast.alice)
    return client


def names(op: dict[str, Any], location: str) -> list[str]:
    return [one["name"] for one in op.get("parameters", ()) if one["in"] == location]


def filled_in(path: str, op: dict[str, Any], real: dict[str, Any], **spoiled: str) -> str:
    """The address with its placeholders filled in; `spoiled` values replace the real ones."""
    mine = f"api-1:{op['operationId']}"
    known = {name: real.get(f"{mine}.{name}", real.get(name)) for name in names(op, "path")}
    return path.format(**known | spoiled)


def addresses(path: str, op: dict[str, Any], real: dict[str, Any], every: int) -> Iterator[str]:
    """The operation's valid address, and with each parameter malformed in turn by every n-th of
    the values, from another first one for each operation and parameter."""
    yield filled_in(path, op, real)
    first = itertools.count(len(op["operationId"]))
    for name in names(op, "path"):
        for value in NASTY_TEXT[next(first) % every :: every]:
            spoiled = {name: quote(value, safe="", errors="surrogatepass")}
            yield filled_in(path, op, real, **spoiled)
    for name in names(op, "query"):
        for value in NASTY_TEXT[next(first) % every :: every]:
            query = urlencode({name: value}, errors="surrogatepass")
            yield f"{filled_in(path, op, real)}?{query}"


def bodies(cast) -> Iterator[bytes]:
    """Descriptions of a new run, each with one wrong (or odd) value."""
    whole = {"project": str(cast.project.pk), "recipe": '"mars2"', "name": '"Try"'}
    fields = [{**whole, name: value} for name in (*whole, "overrides") for value in NASTY_JSON]
    fields += [{**whole, "overrides": '{"a\\u0000": 1}', name: "1"} for name in ("", "\x00", "id")]
    for path in PATHS + NOWHERE:
        for value in NASTY_JSON[:: 6 if path in NOWHERE else 1]:
            fields.append({**whole, "overrides": f"{{{json.dumps(path)}: {value}}}"})
    for field in fields:
        text = ", ".join(f"{json.dumps(name)}: {value}" for name, value in field.items())
        yield f"{{{text}}}".encode()


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def check(response, op: dict[str, Any], what: Any) -> None:
    """The response is documented, and a refusal names its reason as problem details."""
    shown = f"{response.status_code} to {ascii(what)[:200]}"
    assert response.status_code in {int(status) for status in op["responses"]}, shown
    assert response.status_code < 500, shown
    if response.status_code < 400:
        return
    assert response["Content-Type"] == "application/problem+json", shown
    assert len(response.content) < 20_000, shown
    if response.request["REQUEST_METHOD"] == "HEAD":
        return
    data = json.loads(response.content, parse_constant=no_constant)
    assert data["status"] == response.status_code and data["detail"], shown
    assert all(problem.keys() == {"path", "value", "reason"} for problem in data["problems"]), shown
    assert data["problems"] or response.status_code != 422, shown
    json.dumps(data).encode().decode()
    response.content.decode().encode()


SHARES = pytest.mark.parametrize("every", large_but([18], [18, 1]), ids=lambda n: f"every {n}")
"""Of the nasty values, every eighteenth, or all of them."""


@SHARES
@pytest.mark.parametrize("path, method, op", operations(), ids=lambda value: str(value)[:40])
def test_no_parameter_breaks_an_operation(alice, arguments, path, method, op, every):
    for address in addresses(path, op, arguments, every):
        check(alice.generic(method.upper(), address), op, address)


@SHARES
@pytest.mark.parametrize("path, method, op", operations(), ids=lambda value: str(value)[:40])
def test_a_stranger_learns_nothing_by_nasty_values(client, arguments, path, method, op, every):
    for address in addresses(path, op, arguments, every):
        response = client.generic(method.upper(), address)
        # (Where everyone is rate-limited, strangers are, too.)
        assert response.status_code in (401, 404, 429), ascii(address)[:200]
        check(response, op, address)


@pytest.mark.large
def test_no_body_breaks_an_operation(alice, arguments):
    """Sends each body and each content type to every operation, and each pair of them to some."""
    posts = [one for one in operations() if one[1] == "post"]
    assert len(posts) > len(MISNAMED)
    as_json = [(body, CONTENT_TYPES[0]) for body in NASTY_BODIES]
    for turn, (path, _, op) in enumerate(posts):
        address = filled_in(path, op, arguments)
        others = enumerate(CONTENT_TYPES[1:], turn)
        misnamed = [(MISNAMED[place % len(MISNAMED)], kind) for place, kind in others]
        for body, kind in as_json + misnamed:
            response = alice.generic("POST", address, body, content_type=kind)
            check(response, op, (path, kind, body[:80]))


@pytest.mark.large
def test_no_description_breaks_the_making_of_a_run(alice, cast):
    (op,) = [op for path, method, op in operations() if op["operationId"] == "create_run"]
    for body in bodies(cast):
        response = alice.generic("POST", "/api/v1/runs", body, content_type="application/json")
        check(response, op, body)
        if response.status_code == 201:
            id = response.json()["id"]
            assert alice.get(f"/api/v1/runs/{id}").status_code == 200, body[:200]
            assert alice.get(f"/runs/{id}/").status_code == 200, body[:200]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_another_method_is_refused_as_problem_details(alice, arguments, method):
    for path, known in api.get_openapi_schema()["paths"].items():
        if method.lower() in known:
            continue
        address = filled_in(path, next(iter(known.values())), arguments)
        response = alice.generic(method, address)
        assert response.status_code == 405, (method, path)
        assert {one.upper() for one in known} <= set(response["Allow"].split(", "))
        if method != "HEAD":
            assert response.json()["status"] == 405


@pytest.mark.parametrize("rest", ["", "x", "runs/x", "runs//", "model/1", "\u0663", "a" * 5000])
def test_an_unknown_address_returns_problem_details(alice, rest):
    response = alice.get(f"/api/v1/{rest}")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"


WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "integer": ("1", True, 1.5, [1], {"a": 1}),
    "number": ("0.5", True, [0.5], {"a": 1}),
    "boolean": ("true", 0, 1, 1.0, [True], {"a": 1}),
    "string": (1, 1.5, True, ["x"], {"a": 1}),
    "array": ("x", 1, True, {"a": 1}),
    "object": ("x", 1, True, [1]),
}


def typed_fields() -> Iterator[tuple[str, str, dict[str, Any], str, str]]:
    """(path, method, operation, field, type) of every field of a JSON body."""
    schemas = api.get_openapi_schema()["components"]["schemas"]
    for path, method, op in operations():
        media = op.get("requestBody", {}).get("content", {}).get("application/json", {})
        whole = media.get("schema", {})
        whole = schemas[whole["$ref"].rpartition("/")[2]] if "$ref" in whole else whole
        for name, field in whole.get("properties", {}).items():
            kinds = [one.get("type") for one in field.get("anyOf", [field])]
            kinds = [kind for kind in kinds if kind not in (None, "null")]
            if len(set(map(str, kinds))) == 1 and isinstance(kinds[0], str):
                yield path, method, op, name, kinds[0]


def test_a_body_field_takes_only_its_own_type(alice, arguments, settings):
    """No "1" and no true for a number, no 1 for a flag; each refusal names the field."""
    settings.RATE_LIMITS = {name: (10**6, 60.0) for name in settings.RATE_LIMITS}
    known, wrong = 0, []
    for path, method, op, name, kind in typed_fields():
        address = filled_in(path, op, arguments)
        for value in WRONG_TYPES[kind]:
            body = json.dumps({name: value})
            answer = alice.generic(method.upper(), address, body, content_type="application/json")
            check(answer, op, (path, name, value))
            paths = [one["path"] for one in answer.json().get("problems", ())]
            named = any(one.partition(".")[0].partition("[")[0] == name for one in paths)
            if answer.status_code != 422 or not named:
                wrong.append((op["operationId"], name, value, answer.status_code))
            known += 1
    assert not wrong, wrong
    assert known > 300
