"""Tests of error pages: the site's own design, a sentence, and a link back."""

import re

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.db.backends.postgresql.base import DatabaseWrapper
from django.http import HttpRequest
from django.urls import path

from tests.helpers.builders import a_run
from webapp.config import urls

handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500


def broken(request: HttpRequest):
    raise RuntimeError("a secret of the server")


def forbidden(request: HttpRequest):
    raise PermissionDenied


def without_database(request: HttpRequest):
    """Queries a database that does not exist."""
    elsewhere = {"NAME": "grove", "HOST": "/nonexistent", "USER": "", "PASSWORD": "", "PORT": ""}
    settings = {**elsewhere, "OPTIONS": {}, "TIME_ZONE": None, "AUTOCOMMIT": True}
    DatabaseWrapper({**settings, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}).cursor()


urlpatterns = [
    *urls.urlpatterns,
    path("broken/", broken),
    path("forbidden/", forbidden),
    path("without-database/", without_database),
    path("api/without-database/", without_database),
]


@pytest.fixture
def visit(client, cast, settings):
    """Bob opens an address of a site with these views; errors become responses instead of
    exceptions."""
    settings.ROOT_URLCONF = __name__
    client.raise_request_exception = False
    client.force_login(cast.bob)
    return client.get


@pytest.mark.parametrize(
    "address, status, title, way_on",
    [
        ("/?cursor=1", 400, "Bad request", "of an earlier page of the same list"),
        ("/forbidden/", 403, "Not allowed", "ask an owner"),
        ("/sign-out/", 405, "Page not available", "use the button"),
        ("/nowhere/", 404, "Not found", "Check the address"),
        ("/sign-in/nothing/", 410, "This sign-in link no longer works", "sign_in_link"),
        ("/broken/", 500, "Server error", "Try again"),
        ("/without-database/", 503, "The database does not answer", "Try again in a few seconds"),
    ],
)
def test_an_error_is_a_page_of_ours_with_a_way_on(visit, address, status, title, way_on):
    response = visit(address)
    content = response.content.decode()
    assert response.status_code == status
    assert f"<title>{title} · Grove</title>" in content and f"<h1>{title}</h1>" in content
    assert way_on in content and re.search(r'class="button primary" href="/"', content)
    assert "css/grove.css" in content and "Content-Security-Policy" in response.headers


@pytest.mark.parametrize("address", ["/broken/", "/without-database/"])
def test_an_error_page_reveals_no_server_internals(visit, address):
    content = visit(address).content.decode()
    assert not re.search("secret|Traceback|nonexistent|RuntimeError", content)


def test_a_program_is_told_what_does_not_answer_as_people_are(visit):
    response = visit("/api/without-database/")
    assert response.status_code == 503
    assert response.headers["Content-Type"] == "application/problem+json"
    detail = "The database does not answer. Nothing is lost. Try again in a few seconds."
    assert response.json()["detail"] == detail


def test_the_database_of_these_tests_is_unreachable(db):
    with pytest.raises(OperationalError):
        without_database(HttpRequest())


def test_a_viewer_sees_whom_to_contact(client, cast):
    client.force_login(cast.vera)
    page = client.post(f"/runs/{a_run(cast).pk}/stop/").content.decode()
    assert (
        "Your role in Trees does not allow you to start, stop or resume runs; ask an owner." in page
    )
