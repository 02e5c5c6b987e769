"""Tests of deliveries to a real HTTP and a real SMTP server: what arrives, what is retried, what is
given up."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.helpers.alerts import a_channel, a_rule, inbox_titles, make_due, send_all
from tests.helpers.builders import a_held_run
from tests.helpers.large import large_but
from webapp.alerts import deliveries
from webapp.alerts.channels import rotate, secret_to_show, send_own_test, send_test
from webapp.alerts.content import LONGEST_SLACK
from webapp.alerts.errors import AlertRefused
from webapp.alerts.mails import MOST_MAILS, WINDOW
from webapp.alerts.models import Channel, Delivery, DeliveryState, RuleKind, Way
from webapp.alerts.services import change_preferences
from webapp.experiments import services
from webapp.projects import membership

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "alerts.md"


def a_failure(cast, cause: str = "CUDA out of memory"):
    run, fencing = a_held_run(cast)
    return services.mark_failed(run.pk, fencing, cause)


def watched(cast, url: str, kind: Way = Way.WEBHOOK) -> Channel:
    """A channel of Bob, to which failures are posted."""
    channel = a_channel(cast.bob, url, kind)
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, inbox=False, channels=[channel])
    return channel


def test_a_webhook_says_what_happened_why_since_when_and_where(cast, receiver, settings):
    settings.SITE_URL = "https://grove.example"
    channel = watched(cast, f"{receiver.url}/ok")
    run = a_failure(cast)
    assert send_all() == 1
    ((_, headers, body),) = receiver.taken
    said = json.loads(body)
    assert said["type"] == "run-failed" and said["title"] == "Shade #1 failed at step 0"
    assert said["cause"] == "CUDA out of memory"
    assert said["link"] == f"https://grove.example/runs/{run.pk}/"
    assert said["run"] == {"id": str(run.pk), "name": "Shade #1", "state": "failed", "step": 0}
    assert (said["project"], said["workspace"]) == ("Oaks", "Trees")
    assert said["since"] == run.finished_at.isoformat()
    delivery = Delivery.objects.get()
    assert said["id"] == headers["webhook-id"] == str(delivery.pk)
    assert (delivery.state, delivery.status, delivery.answer) == ("sent", 200, "ok")
    assert secret_to_show(channel) not in str(headers) + body.decode()
    assert send_all() == 0, "it is sent once"


def test_the_signature_is_that_of_the_standard_and_a_new_secret_ends_the_old(cast, receiver):
    channel = watched(cast, f"{receiver.url}/ok")
    old = secret_to_show(channel)
    assert old.startswith("whsec_") and old not in str(Channel.objects.values().get())
    a_failure(cast)
    new = rotate(channel)
    assert new != old
    send_all()
    ((_, headers, body),) = receiver.taken
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for secret, fits in ((old, False), (new, True)):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        mine = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert (headers["webhook-signature"] == f"v1,{mine}") is fits
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60


def test_the_verification_of_the_guide_accepts_ours_and_nothing_else(cast, receiver):
    """Runs the snippet of docs/guides/alerts.md."""
    (snippet,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)
    space: dict = {}
    exec(compile(snippet, str(GUIDE), "exec"), space)
    verified = space["verified"]
    channel = watched(cast, f"{receiver.url}/ok")
    a_failure(cast)
    send_all()
    ((_, headers, body),) = receiver.taken
    secret = secret_to_show(channel)
    assert verified(secret, headers, body)
    assert not verified(secret, headers, body + b" ")
    assert not verified(rotate(channel), headers, body)
    assert not verified(secret, headers | {"webhook-timestamp": "1"}, body), "too old"
    assert not verified(secret, headers | {"webhook-id": "other"}, body)
    assert not verified(secret, headers | {"webhook-signature": "v1,"}, body)
    assert not verified(secret, {}, body) and not verified("", headers, body)


def test_slack_gets_escaped_text_with_a_link(cast, receiver):
    watched(cast, f"{receiver.url}/ok", Way.SLACK)
    run = a_failure(cast, "<!channel> & <https://evil.example|click>")
    send_all()
    (body,) = receiver.bodies()
    text = json.loads(body)["text"]
    assert json.loads(body).keys() == {"text"}
    assert text.startswith("*Shade #1 failed at step 0*\n&lt;!channel&gt; &amp; &lt;https:")
    assert f"/runs/{run.pk}/|Open in Grove>" in text
    assert "webhook-signature" not in receiver.taken[0][1]


def test_slack_like_servers_get_a_text_that_fits_and_mentions_nobody(cast, receiver):
    watched(cast, f"{receiver.url}/ok", Way.SLACK)
    hostile = "@channel @everyone ![x](https://evil.example/pixel) " + "<&" * 3000
    a_failure(cast, hostile)
    send_all()
    text = json.loads(receiver.bodies()[0])["text"]
    assert len(text) <= LONGEST_SLACK and text.endswith("|Open in Grove>")
    assert "@channel" not in text and "@everyone" not in text and "](" not in text
    assert re.search(r"(&lt;&amp;)+(&lt;)?\u2026\n", text), "cut between two characters"


ATTEMPTS = (
    ("/inside", 302, "it redirects, which is not followed"),
    ("/500", 500, "HTTP 500: it failed"),
    ("/403", 403, "HTTP 403: it refused the notice"),
    ("/close", None, "disconnected"),
)


@pytest.mark.parametrize(("path", "status", "reason"), large_but(ATTEMPTS[:1], ATTEMPTS))
def test_a_failed_attempt_is_recorded_and_retried_until_it_arrives(
    cast, receiver, path, status, reason
):
    channel = watched(cast, receiver.url + path)
    a_failure(cast)
    send_all()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status, delivery.attempts) == ("pending", status, 1)
    assert reason in delivery.error and receiver.bodies() == []
    assert timedelta(seconds=9) < delivery.due_at - timezone.now() < timedelta(seconds=13)
    make_due()
    send_all()
    assert Channel.objects.get().failures == 2 and Delivery.objects.get().attempts == 2
    Channel.objects.filter(pk=channel.pk).update(url=f"{receiver.url}/ok")
    make_due()
    send_all()
    assert Delivery.objects.get().state == DeliveryState.SENT
    assert Channel.objects.get().failures == 0
    ids = {headers["webhook-id"] for _, headers, _ in receiver.taken}
    assert ids == {str(delivery.pk)}, "every attempt has the same id"


def test_a_receiver_that_never_answers_is_a_line_of_the_log(cast, receiver, monkeypatch):
    monkeypatch.setenv("GROVE_WEBHOOK_SECONDS", "0.2")
    watched(cast, f"{receiver.url}/hang")
    a_failure(cast)
    send_all()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.error) == ("pending", "no response within 0.2 s")


def test_a_channel_that_is_deleted_while_it_is_posted_to_ends_quietly(cast, receiver):
    channel = watched(cast, f"{receiver.url}/500")
    a_failure(cast)
    taken = deliveries._take()
    Channel.objects.filter(pk=channel.pk).delete()
    deliveries._post(taken)
    assert len(receiver.taken) == 1 and not Delivery.objects.exists()


def test_who_lost_the_right_meanwhile_gets_nothing(cast, receiver):
    """As the notice waited for the end of quiet hours, or for a receiver."""
    watched(cast, f"{receiver.url}/ok")
    a_failure(cast)
    membership.remove_member(cast.project.workspace, cast.bob.pk, cast.alice)
    send_all()
    delivery = Delivery.objects.get()
    assert delivery.state == "failed" and "no longer see" in delivery.error
    assert receiver.taken == []


def test_an_answer_of_ten_megabytes_is_cut(cast, receiver):
    watched(cast, f"{receiver.url}/huge")
    a_failure(cast)
    send_all()
    assert Delivery.objects.get().answer == "x" * 200


def test_a_private_address_is_refused_at_creation_and_when_it_is_sent(cast, receiver, settings):
    settings.ALERT_NETWORKS = []
    with pytest.raises(AlertRefused, match="GROVE_ALERT_NETWORKS"):
        a_channel(cast.bob, f"{receiver.url}/ok")
    settings.ALERT_NETWORKS = ["127.0.0.0/8"]
    watched(cast, f"{receiver.url}/ok")
    settings.ALERT_NETWORKS = []  # the operator takes it back
    a_failure(cast)
    send_all()
    delivery = Delivery.objects.get()
    assert delivery.state == DeliveryState.FAILED and "no public address" in delivery.error
    assert receiver.taken == []


def test_a_worker_that_dies_while_it_sends_delays_and_loses_nothing(cast, receiver):
    """The process ends between taking and sending, as by SIGKILL."""
    watched(cast, f"{receiver.url}/ok")
    a_failure(cast)
    taken = deliveries._take()
    assert taken is not None and send_all() == 0, "another worker waits for this one"
    make_due()
    assert send_all() == 1 and len(receiver.bodies()) == 1
    assert Delivery.objects.get().attempts == 2


def test_a_delivery_is_given_up_after_its_deadline(cast, receiver):
    watched(cast, f"{receiver.url}/500")
    a_failure(cast)
    send_all()
    Delivery.objects.update(deadline=timezone.now() + timedelta(seconds=1))
    make_due()
    send_all()
    delivery = Delivery.objects.get()
    assert delivery.state == DeliveryState.FAILED and "HTTP 500" in delivery.error


@pytest.mark.large
def test_a_channel_that_fails_for_hours_is_disabled_with_a_notice(cast, receiver):
    channel = watched(cast, f"{receiver.url}/500")
    for _ in range(3):
        a_failure(cast)
    send_all()
    assert Channel.objects.get().failures == 1, "the others wait, too"
    for _ in range(deliveries.MOST_FAILURES):
        make_due()
        send_all()
    assert Channel.objects.get().disabled_at is None, "not yet: it fails for minutes"
    long_ago = timezone.now() - deliveries.FAILING_FOR
    Channel.objects.filter(pk=channel.pk).update(failing_since=long_ago)
    make_due()
    send_all()
    channel.refresh_from_db()
    assert channel.disabled_at and "HTTP 500" in channel.disabled_reason
    assert inbox_titles(cast.bob) == ["The channel hook is disabled"]
    make_due()
    send_all()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"failed"}
    before = len(receiver.taken)
    a_failure(cast)
    assert send_all() == 0 and len(receiver.taken) == before


def test_a_receiver_that_is_gone_disables_its_channel_at_once(cast, receiver):
    watched(cast, f"{receiver.url}/410")
    a_failure(cast)
    send_all()
    assert "gone" in Channel.objects.get().disabled_reason


def test_quiet_hours_hold_mail_and_own_channels_and_neither_inbox_nor_project(
    cast, receiver, mailbox
):
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    channel = a_channel(cast.bob, f"{receiver.url}/ok")
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, mail=True, channels=[channel])
    shared = a_channel(cast.project, f"{receiver.url}/shared")
    a_rule(cast.project, cast.project, RuleKind.RUN_FAILED, inbox=False, channels=[shared])
    now = timezone.now()
    begin, end = (now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time()
    change_preferences(cast.bob, True, begin, end, "UTC")
    a_failure(cast)
    send_all()
    assert len(inbox_titles(cast.bob)) == 1
    assert [path for path, _, _ in receiver.taken] == ["/shared"] and mailbox.taken == []
    held = Delivery.objects.filter(state="pending")
    assert held.count() == 2 and {one.attempts for one in held} == {0}
    assert all(timedelta(minutes=58) < one.due_at - now < timedelta(minutes=62) for one in held)
    send_test(cast.bob, channel)
    send_all()
    assert len(receiver.bodies()) == 1, "a test waits for no quiet hours"
    change_preferences(cast.bob, True, None, None, "UTC")
    make_due()
    send_all()
    assert len(receiver.bodies()) == 2 and len(mailbox.taken) == 1


def test_mail_is_plain_text_to_the_verified_address_alone(cast, mailbox):
    cast.bob.emailaddress_set.create(email="no@example.org", verified=False)
    with pytest.raises(AlertRefused, match="no verified address"):
        a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, mail=True)
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, mail=True)
    run = a_failure(cast, "line one\r\nBcc: evil@example.org")
    send_all()
    ((sender, to, message),) = mailbox.taken
    assert (sender, to) == ("grove@example.org", ["bob@example.org"])
    assert message["Subject"] == "[Grove] Shade #1 failed at step 0" and message["Bcc"] is None
    assert message.get_content_type() == "text/plain"
    text = message.get_content()
    assert "line one" in text and f"/runs/{run.pk}/" in text and "Since " in text


def test_many_alerts_at_once_become_a_digest(cast, mailbox):
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, mail=True)
    for _ in range(MOST_MAILS):
        a_failure(cast)
        send_all()
    assert len(mailbox.taken) == MOST_MAILS
    for _ in range(4):
        a_failure(cast)
    send_all()
    assert len(mailbox.taken) == MOST_MAILS, "the others wait for the window's end"
    held = Delivery.objects.filter(state="pending")
    assert held.count() == 4 and all(one.due_at > timezone.now() for one in held)
    Delivery.objects.filter(state="sent").update(sent_at=timezone.now() - WINDOW)
    make_due()
    send_all()
    digest = mailbox.taken[-1][2]
    assert len(mailbox.taken) == MOST_MAILS + 1
    assert digest["Subject"] == "[Grove] 4 alerts: Shade #1 failed at step 0 and others"
    assert digest.get_content().count("Shade #1 failed") == 4
    assert not Delivery.objects.exclude(state="sent").exists()


def test_no_other_worker_sends_what_a_digest_holds(cast, mailbox):
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, mail=True)
    for _ in range(3):
        a_failure(cast)
    first = deliveries._take()
    together = deliveries._take_with(first)
    assert len(together) == 2
    assert deliveries._take() is None, "another worker finds nothing"
    make_due()
    send_all()
    assert len(mailbox.taken) == 1, "and if this one was killed, the next sends the digest"


def test_a_dead_mail_server_delays_the_mail(cast, mailbox, settings):
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    a_rule(cast.bob, cast.project, RuleKind.RUN_FAILED, mail=True)
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    a_failure(cast)
    send_all()
    assert "did not take it" in Delivery.objects.get().error and mailbox.taken == []
    settings.EMAIL_PORT = port
    make_due()
    send_all()
    assert len(mailbox.taken) == 1
    cast.bob.emailaddress_set.all().delete()
    a_failure(cast)
    send_all()
    refused = Delivery.objects.latest("created")
    assert refused.state == DeliveryState.FAILED and "verified address" in refused.error


def test_a_test_of_ones_own_goes_to_the_inbox_and_by_mail(cast, mailbox):
    cast.bob.emailaddress_set.create(email="bob@example.org", verified=True, primary=True)
    send_own_test(cast.bob, with_mail=True)
    send_all()
    assert inbox_titles(cast.bob) == ["Test of your notifications"]
    assert mailbox.taken[0][2]["Subject"] == "[Grove] Test of your notifications"
