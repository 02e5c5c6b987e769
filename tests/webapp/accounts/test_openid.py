"""Tests of sign-in by an organisation's OpenID provider, and of mail, with real servers."""

import re
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.helpers.builders import a_held_run
from tests.helpers.mailbox import a_mailbox
from tests.webapp.accounts.openid_provider import CLIENT, SECRET, a_provider
from webapp.accounts.models import User
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.config.environment import read_provider
from webapp.projects.membership import invite
from webapp.projects.models import Role


@pytest.fixture(scope="module")
def provider():
    with a_provider() as provider:
        yield provider


@pytest.fixture
def with_provider(provider, settings):
    given = {"GROVE_OIDC_ISSUER": provider.issuer, "GROVE_OIDC_CLIENT": CLIENT}
    settings.OIDC = read_provider({**given, "GROVE_OIDC_SECRET": SECRET})
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [settings.OIDC.app()]}}
    return provider


def come_back(client, **change):
    """Starts at the sign-in page, passes by the provider, and returns as a browser would."""
    sent = client.post("/account/provider/oidc/")
    assert sent.status_code == 302
    back = httpx.get(sent.url).headers["Location"]
    results = {name: one[0] for name, one in parse_qs(urlsplit(back).query).items()}
    return client.get(urlsplit(back).path, {**results, **change})


def test_an_account_of_the_organisation_comes_in_without_an_invitation(client, db, with_provider):
    assert b"127.0.0.1" in client.get("/sign-in/").content
    assert come_back(client).url == "/"
    erika = User.objects.get()
    assert erika.username == "erika" and not erika.has_usable_password()
    assert client.get("/").wsgi_request.user == erika
    assert erika.memberships.get().role == Role.OWNER, "of a workspace of their own"
    client.post("/sign-out/")
    assert come_back(client).url == "/" and User.objects.count() == 1, "the same account again"


def test_an_account_of_ours_is_not_taken_over_by_its_name(client, cast, with_provider):
    with_provider.person = {"sub": "666", "preferred_username": "alice"}
    come_back(client)
    newcomer = client.get("/").wsgi_request.user
    assert newcomer.pk != cast.alice.pk and newcomer.username != "alice"
    with_provider.person = {"sub": "4711", "preferred_username": "erika"}


def test_an_unrequested_openid_response_signs_nobody_in(client, db, with_provider):
    for change in ({"state": "made-up"}, {"code": "made-up"}):
        assert come_back(client, **change).status_code < 500, change
        assert not User.objects.exists() and client.get("/").status_code == 302


@pytest.fixture
def post(settings):
    """Sends mail by SMTP, as with GROVE_MAIL_URL; yields the received messages."""
    with a_mailbox(settings) as box:
        settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
        settings.ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        yield box.taken


def test_an_invited_person_gets_the_mail_that_verifies_their_address(client, cast, post):
    path = invite(cast.project.workspace, cast.alice, Role.MEMBER, single_use=True)
    secret = "lightly-shaded-42"
    form = {"username": "dora", "password1": secret, "password2": secret}
    client.post(client.post(path).url, {**form, "email": "dora@example.org"})
    ((sender, to, message),) = post
    assert (sender, to) == ("grove@example.org", ["dora@example.org"])
    assert message["Subject"].startswith("[Grove] ")
    text = message.get_body(("plain",)).get_content()
    (link,) = re.findall(r"http://testserver(/account/email/confirm/\S+)", text)
    assert client.post(link).status_code == 302
    assert User.objects.get(username="dora").emailaddress_set.get().verified


def test_a_mention_arrives_by_mail_and_a_dead_server_loses_no_comment(
    cast, post, settings, django_capture_on_commit_callbacks, caplog
):
    run, _ = a_held_run(cast)
    cast.mia.emailaddress_set.create(email="mia@example.org", verified=True, primary=True)
    with django_capture_on_commit_callbacks(execute=True):
        write_comment(Target((run,)), cast.bob, "@mia café ✓", "https://grove.example")
    ((_, to, message),) = post
    assert to == ["mia@example.org"] and "café ✓" in message.get_content()
    settings.EMAIL_PORT = 1
    with django_capture_on_commit_callbacks(execute=True):
        made = write_comment(Target((run,)), cast.bob, "@mia again", "https://grove.example")
    assert made.notices.get(user=cast.mia).read_at is None
    assert "mail of a mention was not sent" in caplog.text
