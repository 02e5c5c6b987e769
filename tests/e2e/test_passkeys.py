"""Test of a passkey: created on the account page, and sufficient to sign in again."""

from __future__ import annotations

import pytest

from tests.helpers.chromium import a_context

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def test_a_user_signs_in_with_only_a_passkey(browser, server, run, faults):
    site = server.url.replace("127.0.0.1", "localhost")  # no passkeys on IP addresses
    context = a_context(browser, base_url=site)
    page = context.new_page()
    faults.watch(page, site)
    device = context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    added = device.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    page.goto(run.sign_in_path())
    page.goto("/account/")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name").fill("this machine")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    page.wait_for_url(lambda url: "/passkeys/new/" not in url)
    (stored,) = device.send("WebAuthn.getCredentials", added)["credentials"]
    assert stored["rpId"] == "localhost" and stored["isResidentCredential"]

    page.goto("/")
    page.get_by_label("Account of demo").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_label("Account of demo").wait_for()
    assert page.url == f"{site}/"
    (used,) = device.send("WebAuthn.getCredentials", added)["credentials"]
    assert used["signCount"] > stored["signCount"]
    context.close()
    assert faults.recorded == []
