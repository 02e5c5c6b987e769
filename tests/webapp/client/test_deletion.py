"""Test of `grove delete-run` against the real server."""

import pytest

from engine.events.vocabulary import RunState
from tests.helpers.builders import a_run
from webapp.client.cli import main
from webapp.experiments.models import Run
from webapp.projects.models import Role


@pytest.mark.large
def test_the_command_says_what_it_deletes_and_deletes_all_or_nothing(
    site, monkeypatch, tmp_path, capsys
):
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    site.cast.bob.memberships.update(role=Role.MAINTAINER)  # the token is his
    one, two, active = (
        a_run(site.cast, state) for state in (RunState.FAILED, RunState.FINISHED, RunState.RUNNING)
    )
    assert main(["delete-run", "--yes", str(one.pk), str(active.pk)]) == 1
    assert "it is running: stop it first" in capsys.readouterr().err
    assert main(["delete-run", str(one.pk)]) == 1, "no terminal answers"
    assert Run.objects.count() == 3
    assert main(["delete-run", "--yes", str(one.pk), str(two.pk)]) == 0
    captured = capsys.readouterr()
    assert captured.out.split() == [str(one.pk), str(two.pk)]
    assert "0 bytes of files" in captured.err and "its experiment" in captured.err
    assert [run.pk for run in Run.objects.all()] == [active.pk]
