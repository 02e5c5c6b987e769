"""Tests of the installed command without Django, torch and Ray, against the real server."""

from __future__ import annotations

import pytest

from tests.packaging.conftest import client_only, source, wheel  # noqa: F401
from webapp.experiments.models import Run


@pytest.fixture
def grove(client_only, site):  # noqa: F811
    """Runs the command; returns its output."""

    def run(*words):
        done = client_only.run(client_only.grove, *words, **site.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_run_is_started_listed_stopped_resumed_and_pulled(grove, site, tmp_path):
    project = site.cast.project.pk
    run_id = grove("start", project, "mars2", "training.steps=3", "--name", "N").strip()
    assert Run.objects.get(pk=run_id).config["training"]["steps"] == 3
    assert grove("runs", "--name", "N").startswith(f"{run_id}  queued")
    assert "stopped" in grove("stop", run_id) and "queued" in grove("resume", run_id)
    log = tmp_path / "log.ndjson"
    assert f"{log} contains the log up to" in grove("pull", run_id, log)
    assert f"ok       login: {site.address}: 1 projects" in grove("doctor")
