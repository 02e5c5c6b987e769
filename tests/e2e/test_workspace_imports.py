"""Test of an import of a workspace's zip in a browser, with the worker's real process."""

from __future__ import annotations

import pytest

from tests.conftest import var_settings
from tests.e2e.test_models import enter, look
from tests.helpers.workspace_zips import changed, with_field
from tests.workers.test_workspace_imports import of_this_test
from webapp import queued_imports
from webapp.accounts.models import User
from webapp.experiments.models import Run
from webapp.offboarding.export import export
from webapp.offboarding.imports import states
from webapp.offboarding.models import WorkspaceImport
from workers.jobs.workspace_imports import WorkspaceImportJob

__all__ = ["enter"]
pytestmark = [pytest.mark.browser, pytest.mark.large, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def job(server, settings, monkeypatch):
    """The worker's job on the server's files."""
    for name, value in var_settings(server.var).items():
        setattr(settings, name, value)
    of_this_test(monkeypatch, server.var)
    return WorkspaceImportJob()


def test_a_zip_is_checked_then_imported_and_its_run_seen(enter, run, job, tmp_path):
    zipped, broken = tmp_path / "trees.zip", tmp_path / "broken.zip"
    zipped.write_bytes(b"".join(export(run.run.project.workspace, run.user)))
    broken.write_bytes(b"no zip")
    stranger = User.objects.create_user("nell")
    page, narrow = enter(stranger), enter(stranger, 400, "dark")

    def seen(name):
        look(page, f"workspace-imports-{name}")
        narrow.goto("/workspace-imports/")
        look(narrow, f"workspace-imports-{name}-400-dark")

    page.goto("/workspaces/")
    page.get_by_role("link", name="Import a workspace").click()
    seen("empty")
    page.get_by_label("File").set_input_files([broken])
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("alert").filter(has_text="broken.zip is no zip").wait_for()
    look(page, "workspace-imports-no-zip")
    page.get_by_label("File").set_input_files([zipped])
    page.get_by_label("Name of the new workspace").fill("Nell's trees")
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_text("Waiting for a worker").wait_for()
    seen("queued")
    page.get_by_role("button", name="Cancel the import").click()
    page.get_by_text("cancelled by nell").wait_for()
    page.get_by_role("button", name="Retry the import").click()
    page.get_by_text("Waiting for a worker").wait_for()
    taken = states.take()
    queued_imports.renew(taken, 0.4, "Reading the tables")
    page.get_by_text("Reading the tables").wait_for()
    seen("running")
    queued_imports.give_back(taken)
    assert job.do_one()
    page.get_by_text("Nothing is imported yet").wait_for()
    page.get_by_text("Nobody gets access by an import").wait_for()
    assert Run.objects.count() == 1 and not WorkspaceImport.objects.exists()
    seen("checked")
    page.get_by_role("button", name="Import trees.zip", exact=True).click()
    page.get_by_text("Waiting for a worker").wait_for()
    assert job.do_one()
    page.get_by_role("link", name="Nell's trees").wait_for()
    seen("done")
    (made,) = WorkspaceImport.objects.values_list("ids", flat=True)
    page.goto(f"/runs/{made['run'][str(run.run.pk)]}/")
    page.get_by_text("Imported. Created by").first.wait_for()


def test_a_refused_zip_is_named_with_its_fault(enter, run, job, tmp_path):
    zipped = tmp_path / "changed.zip"
    zipped.write_bytes(b"".join(export(run.run.project.workspace, run.user)))
    zipped.write_bytes(changed(zipped, {"runs.jsonl": with_field("seed", 7)}, listed=False))
    page = enter(run.user)
    page.goto(f"/workspaces/{run.run.project.workspace.slug}/close/")
    page.get_by_role("link", name="Import a zip").click()
    assert page.get_by_label("Into").input_value() == run.run.project.workspace.slug
    assert page.get_by_label("Name of the new workspace").is_disabled()
    page.get_by_label("File").set_input_files([zipped])
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_text("Waiting for a worker").wait_for()
    assert job.do_one()
    page.get_by_text("runs.jsonl: is not what the manifest says").wait_for()
    page.get_by_text("The file is deleted").wait_for()
    look(page, "workspace-imports-refused")
    dark = enter(run.user, 1280, "dark")
    dark.goto("/workspace-imports/")
    look(dark, "workspace-imports-refused-dark")
