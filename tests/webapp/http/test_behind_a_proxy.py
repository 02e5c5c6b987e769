"""Tests of requests as proxies send them: on another port, below a path, and by plain HTTP."""

import re

import pytest
from django.test import Client

OTHER_PORT = "https://testserver:9443"


@pytest.fixture
def behind(settings, cast):
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    return Client(enforce_csrf_checks=True)


def signing_in(client, origin):
    """The status of a sign-in with a wrong password from a page of this origin."""
    page = client.get("/sign-in/", secure=True).content.decode()
    (token,) = set(re.findall(r'csrfmiddlewaretoken" value="([^"]+)', page))
    form = {"csrfmiddlewaretoken": token, "login": "bob", "password": "wrong"}
    return client.post(
        "/sign-in/", form, secure=True, headers={"origin": origin, "host": "testserver"}
    ).status_code


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://testserver", 200),
        (OTHER_PORT, 200),
        ("http://testserver:9443", 403),
        ("https://evil.example:9443", 403),
        ("https://testserver.evil.example", 403),
        ("https://[", 403),
        ("null", 403),
    ],
)
def test_a_form_of_another_port_of_the_same_host_is_taken(behind, origin, status):
    assert signing_in(behind, origin) == status


def test_without_a_trusted_proxy_the_port_counts(behind, settings):
    settings.TRUSTED_PROXIES = []
    assert signing_in(behind, OTHER_PORT) == 403


@pytest.mark.parametrize("header", ["X-Forwarded-Prefix", "X-Script-Name"])
def test_a_site_below_a_path_is_refused_with_a_sentence(client, header):
    refused = client.get("/sign-in/", headers={header: "/grove"})
    assert refused.status_code == 501
    assert "only at the root of a host name" in refused.content.decode()
    assert "'/grove'" in refused.content.decode()


HEADERS = (
    "Content-Security-Policy", "Permissions-Policy", "Referrer-Policy", "X-Content-Type-Options",
    "X-Frame-Options", "Cross-Origin-Opener-Policy",
)  # fmt: skip


@pytest.mark.parametrize("address", ["/api/v1/runs", "/grove/api/v1/runs"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_rest_below_a_path_is_refused_with_problem_details(client, address, method):
    refused = getattr(client, method)(address, headers={"X-Forwarded-Prefix": "/grove/"})
    assert refused.status_code == 501
    assert refused["Content-Type"] == "application/problem+json"
    body = refused.json()
    assert body["status"] == 501 and body["title"] == "Not Implemented" and body["problems"] == []
    assert "only at the root of a host name" in body["detail"] and "'/grove/'" in body["detail"]


@pytest.mark.parametrize("address", ["/sign-in/", "/api/v1/runs", "/grove/nothing"])
def test_a_refusal_has_the_headers_of_a_page(client, address):
    refused = client.get(address, headers={"X-Forwarded-Prefix": "/grove"})
    assert refused.status_code == 501
    assert [name for name in HEADERS if not refused.headers.get(name)] == []


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/runs", "/api/v1/nothing", "/sign-in/", "/accounts/nothing"])
def test_so_has_what_other_middleware_refuses(client, address):
    answer = client.get(address)
    assert [name for name in HEADERS if not answer.headers.get(name)] == [], answer.status_code


@pytest.mark.django_db
def test_a_prefix_of_the_root_is_none(client):
    assert client.get("/sign-in/", headers={"X-Forwarded-Prefix": "/"}).status_code == 200
    assert client.get("/healthz", headers={"X-Forwarded-Prefix": "/grove"}).status_code == 200


@pytest.mark.django_db
def test_health_is_answered_without_tls_and_a_page_is_not(client, settings):
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz").status_code == 200
    assert client.get("/sign-in/").status_code == 301
