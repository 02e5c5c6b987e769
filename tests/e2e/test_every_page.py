"""Tests that every page of the site is accessible and fits small and wide screens.

The pages are derived from the addresses (`tests.e2e.addresses`), not listed by hand.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.test import RequestFactory

from tests.e2e.addresses import a_site
from tests.e2e.wellness import accessibility_errors, too_wide
from tests.helpers.chromium import PageErrors, a_context
from tests.helpers.large import large_but
from tests.webapp.accounts.openid_provider import CLIENT, SECRET, a_provider
from tests.webapp.telemetry.stream_server import a_session
from webapp.http import error_pages

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ERRORS = ("/nowhere/", "/?cursor=1", "/sign-in/nothing/", "/invitations/nothing/")


@pytest.fixture
def site(transactional_db, settings, server):
    return a_site(settings, server)


def signed_in(page, user) -> None:
    """Signs `user` in to the browser of `page`; None signs out."""
    page.context.clear_cookies()
    if user is not None:
        site = "{0.scheme}://{0.netloc}".format(urlsplit(page.url))
        session = a_session(user).session_key
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": site}])


def walked(page, origin: str, pages: dict[str, str], check=accessibility_errors) -> list[str]:
    """Returns the faults of all pages."""
    found = []
    for name, address in pages.items():
        response = page.goto(origin + address)
        assert response.status == 200, (name, response.status)
        page.locator("h1").first.wait_for()
        found += check(page, name)
    return found


def too_wide_pages(page, what: str) -> list[str]:
    """The cheap part of `accessibility_errors`."""
    return [f"{what}: {problem}" for problem in too_wide(page)]


@pytest.mark.parametrize(
    "check", large_but([too_wide_pages], [too_wide_pages, accessibility_errors])
)
def test_every_page_fits_and_is_accessible(window, server, site, check):
    page = window("/")
    signed_in(page, site.cast.alice)
    found = walked(page, server.url, site.pages(), check)
    signed_in(page, None)
    of_nobody = site.pages("nobody").items() - site.pages().items()
    assert {"account_login", "account_signup"} <= dict(of_nobody).keys()
    found += walked(page, server.url, dict(of_nobody), check)
    assert not found, "\n".join(found)


def answered(response, route) -> None:
    route.fulfill(status=response.status_code, content_type="text/html", body=response.content)


def test_pages_of_an_error_are_accessible_fit_and_lead_on(window, server, site, faults):
    faults.expected = ("Failed to load resource",)
    page = window("/")
    found = []
    refused = f"/workspaces/{site.cast.project.workspace.slug}/audit/"
    for address in (*ERRORS, refused):
        signed_in(page, site.cast.vera)
        assert page.goto(server.url + address).status >= 400
        page.locator(".gate h1").wait_for()
        found += accessibility_errors(page, address)
        page.get_by_role("link", name="Back to runs").click()
        page.get_by_role("heading", name="Runs").wait_for()
    # Errors that no address triggers at will are produced by their handlers and served to the page.
    request = RequestFactory().get("/broken/")
    for answer in (error_pages.server_error(request), error_pages.too_many_requests(request)):
        page.unroute_all()
        page.route("**/broken/", partial(answered, answer))
        page.goto(f"{server.url}/broken/")
        page.get_by_text(str(answer.status_code)).wait_for()
        found += accessibility_errors(page, f"status {answer.status_code}")
    assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def open_server(serves):
    """The site with mail and an organisation's OpenID provider."""
    with a_provider() as provider:
        outside = {
            "GROVE_MAIL_URL": "smtp://localhost:1",  # these tests send no mail
            "GROVE_MAIL_FROM": "grove@localhost",
            "GROVE_OIDC_ISSUER": provider.issuer,
            "GROVE_OIDC_CLIENT": CLIENT,
            "GROVE_OIDC_SECRET": SECRET,
        }
        served = serves(**outside)
        served.start()
        yield served
        served.kill()


PASSWORD = "correct horse battery staple"


@pytest.fixture
def alice(site):
    """Alice with a password, an email address, an app and recovery codes; (user, the app's
    secret)."""
    user, secret = site.cast.alice, generate_totp_secret()
    user.set_password(PASSWORD)
    user.email = "alice@localhost"
    user.save()
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return user, secret


def code_of(secret: str) -> str:
    """The app's current code."""
    return format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))


@pytest.mark.large
def test_one_signs_in_with_password_and_code_and_sees_the_pages_of_both(
    browser, open_server, site, alice
):
    user, secret = alice
    problems = PageErrors(expected=("status of 400", "status of 429"))
    context = a_context(browser, base_url=open_server.url, reduced_motion="reduce")
    page = context.new_page()
    problems.watch(page, open_server.url)
    found = []

    def see(address: str) -> None:
        page.goto(address)
        page.locator("h1").wait_for()
        found.extend(accessibility_errors(page, address))

    for name in ("account_login", "account_reset_password", "account_reset_password_done",
                 "account_reset_password_from_key_done", "account_email_verification_sent",
                 "socialaccount_login_cancelled", "account_inactive"):  # fmt: skip
        see(site.address(name))
    page.goto("/sign-in/")
    page.locator("input[name=login]").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/sign-in/code/")
    found += accessibility_errors(page, "the code at sign-in")
    code = page.locator("input[name=code]")
    right = code_of(secret)
    code.fill(f"{(int(right) + 1) % 1_000_000:06}")
    page.keyboard.press("Enter")
    page.get_by_text("Incorrect code").wait_for()
    found += accessibility_errors(page, "a wrong code")
    code.fill(code_of(secret))
    page.keyboard.press("Enter")
    page.get_by_label("Account of alice").wait_for()
    see(site.address("mfa_deactivate_totp"))
    assert "confirm" in page.url, "who came in long ago shows the password again"
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**" + site.address("mfa_deactivate_totp"))
    for name in ("account_email", "socialaccount_connections", "account_change_password",
                 "mfa_index", "mfa_deactivate_totp", "mfa_view_recovery_codes",
                 "mfa_generate_recovery_codes"):  # fmt: skip
        see(site.address(name))
        assert urlsplit(page.url).path == site.address(name)
    context.close()
    assert not found, "\n".join(found)
    assert problems.recorded == []
