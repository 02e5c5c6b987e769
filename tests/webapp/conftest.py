"""Fixture: the cast."""

import pytest

from tests.helpers.builders import Cast, a_cast


@pytest.fixture
def cast(db) -> Cast:
    return a_cast()
