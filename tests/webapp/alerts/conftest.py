"""Fixtures: a local receiver of webhooks that the site may reach, and a mailbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.mailbox import Box, a_mailbox
from tests.helpers.receivers import Receiver, a_receiver


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.ALERT_NETWORKS = ["127.0.0.0/8"]
    with a_receiver() as receiver:
        yield receiver


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Box]:
    with a_mailbox(settings) as box:
        yield box
