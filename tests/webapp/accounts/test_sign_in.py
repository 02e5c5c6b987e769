"""Tests of sign-in with allauth: second factors, passkeys, mail, limits."""

import re

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.core import mail
from django.core.cache import cache
from django.test import Client

from tests.helpers.builders import a_token
from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_sign_in_link
from webapp.accounts.tokens import user_by_secret
from webapp.config.environment import SettingError, read_mail, read_provider
from webapp.projects.membership import invite
from webapp.projects.models import Role

PASSWORD = "lightly-shaded-42"


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def mailed(settings):
    """Mail as with GROVE_MAIL_URL; sent messages are in `mail.outbox`."""
    settings.MAIL_IS_SENT = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
    return mail.outbox


def give_password(user: User) -> User:
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(client, name: str = "bob", password: str = PASSWORD):
    return client.post("/sign-in/", {"login": name, "password": password})


def code_of(secret: str) -> str:
    counter = next(iter(yield_hotp_counters_from_time()))
    return format_hotp_value(hotp_value(secret, counter))


def test_an_authenticator_app_is_a_second_factor_and_a_recovery_code_replaces_it(client, cast):
    give_password(cast.bob)
    sign_in(client)
    requested = client.get("/account/app/").url
    assert requested.startswith("/account/confirm/"), (
        "the password again, to change how one signs in"
    )
    assert client.post(requested, {"password": PASSWORD}).url == "/account/app/"
    page = client.get("/account/app/")
    secret = page.context["form"].secret
    assert client.post("/account/app/", {"code": code_of(secret)}).status_code == 302
    stored = Authenticator.objects.get(user=cast.bob, type=Authenticator.Type.TOTP)
    assert secret not in str(stored.data), "encrypted where it lies"
    codes = client.get("/account/codes/").context["unused_codes"]
    client.post("/sign-out/")
    assert sign_in(client).url == "/sign-in/code/"
    assert client.get("/").status_code == 302, "the password alone lets nobody in"
    assert client.post("/sign-in/code/", {"code": "000000"}).status_code == 200
    assert client.get("/").status_code == 302
    assert client.post("/sign-in/code/", {"code": codes[0]}).url == "/"
    assert client.get("/").status_code == 200
    client.post("/sign-out/")
    sign_in(client)
    assert client.post("/sign-in/code/", {"code": codes[0]}).status_code == 200, "works once"


def test_wrong_passwords_lock_the_name_with_429(client, cast):
    give_password(cast.bob)
    cache.clear()
    answers = [sign_in(client, password="wrong") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert int(answers[-1]["Retry-After"]) == 300
    assert sign_in(client).status_code == 429, "the right one does not help now"
    assert sign_in(client, "mia", "wrong").status_code == 200


def test_too_many_sign_ins_from_one_address_return_when_to_retry(client, cast, settings):
    cache.clear()
    settings.ACCOUNT_RATE_LIMITS = {"login": "2/m/ip"}
    answers = [sign_in(client, f"nobody-{index}") for index in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[-1]["Retry-After"] == "60" and b"Too many requests" in answers[-1].content


def test_an_account_requires_an_invitation(client, cast):
    form = {"username": "dora", "password1": PASSWORD, "password2": PASSWORD}
    assert b"You need an invitation" in client.post("/sign-up/", form).content
    assert not User.objects.filter(username="dora").exists()


def test_with_mail_an_address_is_verified_before_one_is_in(client, cast, mailed):
    path = invite(cast.project.workspace, cast.alice, Role.MEMBER, single_use=True)
    form = {"username": "dora", "password1": PASSWORD, "password2": PASSWORD}
    made = client.post(client.post(path).url, {**form, "email": "dora@example.org"})
    assert made.url == "/account/email/sent/" and client.get(made.url).status_code == 200
    assert client.get("/").status_code == 302
    (link,) = re.findall(r"http://testserver(/account/email/confirm/\S+)", mailed[0].body)
    assert client.post(link).status_code == 302
    assert sign_in(client, "dora").status_code == 302
    assert client.get("/").wsgi_request.user.username == "dora"
    assert cast.project.workspace.memberships.get(user__username="dora").role == "member"


def test_accounts_from_before_mail_was_enabled_can_sign_in(client, cast, mailed):
    give_password(cast.bob)
    assert sign_in(client).url == "/"
    assert client.get("/account/email/").status_code == 200


def test_a_forgotten_password_is_reset_by_mail(client, cast, mailed):
    give_password(cast.bob)
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    client.post("/account/password/forgotten/", {"email": "bob@example.org"})
    (link,) = re.findall(r"http://testserver(/account/password/reset/\S+)", mailed[0].body)
    form = client.get(link, follow=True)
    new = {"password1": "deeply-rooted-17", "password2": "deeply-rooted-17"}
    assert client.post(form.redirect_chain[-1][0], new).status_code == 302
    assert sign_in(client, password="deeply-rooted-17").url == "/"


FORGOTTEN = b"Forgot your password?"


def test_a_reset_is_offered_once_where_mail_is_configured_and_else_nowhere(client, cast, settings):
    give_password(cast.bob)
    for is_sent, number in ((False, 0), (True, 1)):
        settings.MAIL_IS_SENT = is_sent
        client.logout()
        assert client.get("/sign-in/").content.count(FORGOTTEN) == number
        sign_in(client)
        assert client.get("/account/password/").content.count(FORGOTTEN) == number


NEW = "deeply-rooted-17"


def _by_the_page(client, **more):
    fields = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW, **more}
    assert client.post("/account/password/", fields).status_code == 302


def _by_mail(client):
    client.post("/account/password/forgotten/", {"email": "bob@example.org"})
    (link,) = re.findall(r"http://testserver(/account/password/reset/\S+)", mail.outbox[-1].body)
    form = client.get(link, follow=True)
    address = form.redirect_chain[-1][0]
    assert client.post(address, {"password1": NEW, "password2": NEW}).status_code == 302


def _on_the_server(client):
    bob = User.objects.get(username="bob")
    bob.set_password(NEW)  # as by `manage.py changepassword`
    bob.save()


@pytest.mark.parametrize("change", [_by_the_page, _by_mail, _on_the_server])
def test_tokens_links_and_other_sessions_end_with_the_password(client, cast, mailed, change):
    give_password(cast.bob)
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    other, stranger = Client(), Client()
    sign_in(client)
    sign_in(other)
    tokens = [a_token(who, cast.project, Scope.RUNS_READ) for who in (cast.bob, cast.mia)]
    link = create_sign_in_link(cast.bob)
    change(client)
    assert [user_by_secret(token) is None for token in tokens] == [True, False]
    assert stranger.get(link).status_code == 410 and other.get("/").status_code == 302
    assert client.get("/").status_code == (200 if change is _by_the_page else 302)
    assert sign_in(stranger, password=NEW).url == "/"


def test_tokens_outlive_the_password_when_requested(client, cast):
    give_password(cast.bob)
    token = a_token(cast.bob, cast.project, Scope.RUNS_READ)
    sign_in(client)
    assert b"Keep my API tokens" in client.get("/account/password/").content
    _by_the_page(client, keep_tokens="on")
    assert user_by_secret(token) == cast.bob


def test_a_stronger_digest_of_the_same_password_ends_nothing(client, cast, settings):
    give_password(cast.bob)
    token = a_token(cast.bob, cast.project, Scope.RUNS_READ)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher",
                                 *settings.PASSWORD_HASHERS]  # fmt: skip
    assert sign_in(client).url == "/"
    assert User.objects.get(pk=cast.bob.pk).password.startswith("scrypt")
    assert user_by_secret(token) == cast.bob


def test_a_link_of_the_server_lets_in_without_any_of_it(client, cast):
    assert client.get(create_sign_in_link(cast.bob)).url == "/"
    assert client.get("/account/").status_code == 200


@pytest.mark.parametrize(
    "url, expected",
    [
        ("smtp://me:se%40cret@mail.example", ("mail.example", 587, "me", "se@cret", True, False)),
        ("smtps://mail.example", ("mail.example", 465, "", "", False, True)),
        ("smtp://localhost:2525", ("localhost", 2525, "", "", False, False)),
    ],
)
def test_mail_is_configured_by_a_url(url, expected):
    read = read_mail({"GROVE_MAIL_URL": url, "GROVE_MAIL_FROM": "grove@example.org"})
    assert (read.host, read.port, read.user, read.password, read.starttls, read.tls) == expected


@pytest.mark.parametrize(
    "env, name",
    [
        ({"GROVE_MAIL_URL": "http://mail.example"}, "GROVE_MAIL_URL"),
        ({"GROVE_MAIL_URL": "smtp://mail.example"}, "GROVE_MAIL_FROM"),
        ({"GROVE_OIDC_ISSUER": "http://id.example"}, "GROVE_OIDC_ISSUER"),
        ({"GROVE_OIDC_ISSUER": "https://id.example"}, "GROVE_OIDC_CLIENT"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(env, name):
    with pytest.raises(SettingError, match=name):
        read_mail(env)
        read_provider(env)
