"""Fixtures: one wheel for all tests, and one environment of each kind."""

import pytest

from tests.packaging.builds import build_wheel, copy_checkout, install


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    return copy_checkout(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def wheel(source, tmp_path_factory):
    return build_wheel(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def client_only(wheel, tmp_path_factory):
    """The environment of `pip install grove-rl`."""
    return install(tmp_path_factory.mktemp("client-only"), wheel, "")


@pytest.fixture(scope="session")
def elsewhere(wheel, tmp_path_factory):
    """The environment of `pip install grove-rl[server]`."""
    return install(tmp_path_factory.mktemp("elsewhere"), wheel, "server")
