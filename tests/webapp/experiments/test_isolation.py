"""Tests of running without isolation: only for a single user, on a site that shows it."""

import pytest

from engine.config.errors import ConfigError
from tests.helpers.builders import a_run
from webapp.experiments.launch.creation import create_experiment_with_run
from webapp.projects.models import Project
from webapp.projects.services import create_project, create_workspace

pytestmark = pytest.mark.django_db
UNSAFE = {"sandbox.allow_unsafe": True}


@pytest.fixture
def of_one(cast):
    """A project with Alice as its only member."""
    return create_project(create_workspace("Alone", "alone", cast.alice), "Elms", "elms")


def test_a_server_without_the_setting_refuses(cast, of_one):
    with pytest.raises(ConfigError, match=r"sandbox.allow_unsafe = True: .*GROVE_ALLOW_UNSAFE=1"):
        create_experiment_with_run(of_one, cast.alice, "demo", UNSAFE, "")


def test_a_shared_workspace_is_refused_for_any_server_response(cast, settings):
    settings.ALLOW_UNSAFE = True
    with pytest.raises(ConfigError, match="is shared"):
        create_experiment_with_run(cast.project, cast.alice, "demo", UNSAFE, "")
    assert not cast.project.experiments.exists()


def test_a_single_user_may_and_every_page_warns(cast, of_one, settings, client):
    settings.ALLOW_UNSAFE = True
    run = create_experiment_with_run(of_one, cast.alice, "demo", UNSAFE, "")
    assert run.config["sandbox"]["allow_unsafe"]
    client.force_login(cast.alice)
    for path in ("/", f"/runs/{run.pk}/", "/models/", "/datasets/", "/sign-in/", "/nowhere/"):
        assert b"may run without isolation" in client.get(path, follow=True).content, path


def test_without_the_setting_no_page_warns(cast, client):
    assert Project.objects.exists()
    client.force_login(cast.alice)
    assert b"without walls" not in client.get(f"/runs/{a_run(cast).pk}/").content
