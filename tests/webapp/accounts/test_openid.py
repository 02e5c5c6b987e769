"""Tests of sign-in by an organisation's OpenID provider, and of mail, with real servers."""

import re
from email import message_from_bytes, policy
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from aiosmtpd.controller import Controller

from tests.helpers.builders import a_held_run
from tests.helpers.ports import a_port
from tests.webapp.accounts.openid_provider import CLIENT, SECRET, a_provider
from webapp.accounts.models import User
from webapp.comments.services import write_comment
from webapp.comments.targets import Target
from webapp.config.environment import read_mail, read_provider
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


class Box:
    """Receives mail by SMTP and keeps it."""

    def __init__(self):
        self.taken = []

    async def handle_DATA(self, server, session, envelope):
        read = message_from_bytes(envelope.content, policy=policy.default)
        self.taken.append((envelope.mail_from, envelope.rcpt_tos, read))
        return "250 taken"


@pytest.fixture
def post(settings):
    """Sends mail by SMTP, as with GROVE_MAIL_URL; yields the received messages."""
    box = Box()
    port = a_port()
    controller = Controller(box, "127.0.0.1", port)
    controller.start()
    try:
        url, sender = f"smtp://127.0.0.1:{port}", "grove@example.org"
        mail = read_mail({"GROVE_MAIL_URL": url, "GROVE_MAIL_FROM": sender})
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = mail.host, mail.port
        settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = mail.starttls, mail.tls
        settings.EMAIL_TIMEOUT, settings.DEFAULT_FROM_EMAIL = 10, mail.sender
        settings.MAIL_IS_SENT = True
        settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
        settings.ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        yield box.taken
    finally:
        controller.stop()


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
