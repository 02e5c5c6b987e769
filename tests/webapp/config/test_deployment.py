"""Tests of a deployed site: the framework's own checks, and the headers of all responses."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.waiting import patience
from webapp.accounts.services import create_sign_in_link
from webapp.config import checks

pytestmark = pytest.mark.service

ROOT = Path(__file__).resolve().parents[3]
PRODUCTION = {
    "GROVE_HTTPS": "1",
    "GROVE_TRUSTED_PROXIES": "10.0.0.5",
    "GROVE_ALLOWED_HOSTS": "grove.example.org",
    "DATABASE_URL": "postgresql://grove@database.example.org/grove",
    "BROKER_URL": "rediss://broker.example.org:6379/0",
    "GROVE_MAIL_URL": "smtp://mail.example.org:587",
    "GROVE_MAIL_FROM": "grove@example.org",
    "GROVE_OIDC_ISSUER": "https://id.example.org",
    "GROVE_OIDC_CLIENT": "grove",
    "GROVE_OIDC_SECRET": "a secret of the provider's",
}


def checked(tmp_path, **change: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    environment = {**os.environ, **PRODUCTION, "GROVE_VAR": str(tmp_path), **change}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120 * patience()
    )


def test_the_settings_of_production_pass_every_check(tmp_path):
    done = checked(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.large
def test_a_wildcard_host_does_not(tmp_path):
    done = checked(tmp_path, GROVE_ALLOWED_HOSTS="*", GROVE_HTTPS="0")
    assert done.returncode == 1
    assert "grove.E001" in done.stderr and "SECURE_SSL_REDIRECT" in done.stderr


@pytest.mark.parametrize(
    "text, fault",
    [
        pytest.param(None, "cannot be read", marks=pytest.mark.large),
        pytest.param("[[[", "cannot be read", marks=pytest.mark.large),
        pytest.param(
            "[elm]\nlicence = 1\n", "GROVE_PRETRAINED, elm.licence", marks=pytest.mark.large
        ),
    ],
)
def test_a_catalogue_with_a_fault_does_not(tmp_path, text, fault):
    file = tmp_path / "catalogue.toml"
    if text is not None:
        file.write_text(text)
    done = checked(tmp_path, GROVE_PRETRAINED=str(file))
    assert done.returncode == 1
    assert "grove.E005" in done.stderr and fault in done.stderr


@pytest.mark.large
def test_tls_without_a_proxy_that_is_trusted_does_not(tmp_path):
    done = checked(tmp_path, GROVE_TRUSTED_PROXIES="")
    assert done.returncode == 1 and "grove.W004" in done.stderr


@pytest.mark.parametrize(
    "change, warns",
    [
        ({}, True),
        pytest.param(  # by the name of its host
            {"GROVE_HTTPS": "0", "GROVE_TRUSTED_PROXIES": ""}, True, marks=pytest.mark.large
        ),
        pytest.param(
            {"GROVE_HTTPS": "0", "GROVE_ALLOWED_HOSTS": "localhost,[::1]"},
            False,
            marks=pytest.mark.large,
        ),
    ],
)
def test_a_shared_site_on_the_embedded_postgres_is_warned_of_it(tmp_path, change, warns):
    done = checked(tmp_path, DATABASE_URL="", **change)
    assert ("grove.W007" in done.stderr) == warns
    assert not warns or "Set DATABASE_URL=postgresql://" in done.stderr


def test_no_two_checks_have_the_same_id():
    ids = re.findall(r'id="(grove\.[EW]\d+)"', Path(checks.__file__).read_text("utf-8"))
    assert ids and len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "path, status",
    [
        ("/sign-in/", 200),
        ("/healthz", 200),
        ("/", 302),
        ("/nowhere/", 404),
        ("/invitations/nothing/", 410),
        ("/api/v1/runs", 401),
        ("/api/v1/openapi.json", 200),
    ],
)
def test_every_kind_of_answer_has_the_secure_headers(client, cast, settings, path, status):
    settings.SECURE_HSTS_SECONDS = 31_536_000
    settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = settings.SECURE_HSTS_PRELOAD = True
    answer = client.get(path, secure=True)
    assert answer.status_code == status
    policy = dict(rule.split(" ", 1) for rule in answer["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in str(policy) and "http" not in str(policy)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["Strict-Transport-Security"].startswith("max-age=31536000; includeSubDomains")
    assert "camera=()" in answer["Permissions-Policy"]


def test_cookies_are_secure_http_only_and_same_site(client, cast, settings):
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    session = client.get(create_sign_in_link(cast.bob), secure=True).cookies["sessionid"]
    assert session["httponly"] and session["secure"] and session["samesite"] == "Lax"
    page = client.get("/account/passkeys/new/", secure=True)
    assert page.cookies["csrftoken"]["secure"] and page.cookies["csrftoken"]["samesite"] == "Lax"
