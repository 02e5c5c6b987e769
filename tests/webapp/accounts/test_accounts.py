"""Tests of signing in."""

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.helpers.builders import a_run
from webapp.accounts.models import SignInLink
from webapp.accounts.services import create_sign_in_link


def test_a_link_signs_in_once(client, cast):
    path = create_sign_in_link(cast.bob)
    response = client.get(path)
    assert response.status_code == 302 and response.url == "/"
    assert client.get("/").wsgi_request.user == cast.bob
    client.logout()
    again = client.get(path)
    assert again.status_code == 410 and b"no longer works" in again.content
    assert client.get("/").status_code == 302


def test_the_token_is_not_stored(cast):
    token = create_sign_in_link(cast.bob).rstrip("/").rsplit("/", 1)[1]
    assert token not in str(SignInLink.objects.values().get())


def test_an_old_link_is_refused(client, cast):
    path = create_sign_in_link(cast.bob)
    SignInLink.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert client.get(path).status_code == 410


def test_the_link_of_a_closed_account_is_refused(client, cast):
    path = create_sign_in_link(cast.bob)
    cast.bob.is_active = False
    cast.bob.save()
    assert client.get(path).status_code == 410


@pytest.mark.parametrize(
    "target, goes_to", [("/models/", "/models/"), ("//evil.example/", "/"), ("https://e.x/", "/")]
)
def test_a_link_leads_on_within_this_site_only(client, cast, target, goes_to):
    response = client.get(create_sign_in_link(cast.bob), {"next": target})
    assert response.url == goes_to


def test_a_password_signs_in_and_out(client, cast, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a fast one
    cast.bob.set_password("lightly-shaded-42")
    cast.bob.save()
    form = {"login": "bob", "password": "lightly-shaded-42"}
    assert client.post("/sign-in/", {**form, "password": "wrong"}).status_code == 200
    assert client.post("/sign-in/", form).url == "/"
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").status_code == 302
    assert client.get("/").status_code == 302


def test_a_command_prints_a_new_link(client, cast, capsys):
    call_command("sign_in_link", "bob")
    (path,) = re.findall(r"^http://localhost:\d+(/sign-in/\S+/)$", capsys.readouterr().out, re.M)
    assert client.get(path).status_code == 302
    assert client.get("/").wsgi_request.user == cast.bob


def test_with_any_free_port_the_link_is_to_the_address_in_the_lock(
    cast, capsys, settings, tmp_path
):
    settings.GROVE_PORT, settings.GROVE_VAR = 0, tmp_path
    with pytest.raises(CommandError, match="Grove is not running"):
        call_command("sign_in_link", "bob")
    (tmp_path / "lock").write_text("http://localhost:4321")
    call_command("sign_in_link", "bob")
    assert capsys.readouterr().out.startswith("http://localhost:4321/sign-in/")


@pytest.mark.parametrize("name", ["dave", "charlie"])
def test_the_command_lists_the_users_it_can_make_links_for(cast, name):
    cast.charlie.is_active = False
    cast.charlie.save()
    with pytest.raises(
        CommandError, match=f"no active account '{name}'. Accounts: alice, bob, mia, vera"
    ):
        call_command("sign_in_link", name)


@pytest.mark.parametrize(
    "came_from, goes_to",
    [
        ("http://testserver/models/", "/models/"),
        ("http://testserver/runs/?x=1", "/runs/"),
        ("https://evil.example/models/", "/"),
        ("http://testserver//evil.example/", "/"),
        (None, "/"),
    ],
)
def test_signing_in_again_returns_to_the_page_of_the_form(client, cast, came_from, goes_to):
    path = f"/runs/{a_run(cast).pk}/stop/"
    response = client.post(path, headers={"Referer": came_from} if came_from else {})
    assert response.url == f"/sign-in/?next={goes_to}"
