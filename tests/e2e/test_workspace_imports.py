"""Test of an import of a workspace's zip in a browser, with the worker's real process."""

from __future__ import annotations

import pytest

from tests.conftest import var_settings
from tests.e2e.test_models import enter, look
from tests.workers.test_workspace_imports import of_this_test
from webapp.accounts.models import User
from webapp.offboarding.export import export
from webapp.offboarding.models import WorkspaceImport
from workers.jobs.workspace_imports import WorkspaceImportJob

__all__ = ["enter"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_exported_workspace_is_uploaded_and_its_run_seen(
    enter, run, server, settings, monkeypatch, tmp_path, faults
):
    for name, value in var_settings(server.var).items():
        setattr(settings, name, value)
    of_this_test(monkeypatch, server.var)
    zipped, broken = tmp_path / "trees.zip", tmp_path / "broken.zip"
    zipped.write_bytes(b"".join(export(run.run.project.workspace, run.user)))
    broken.write_bytes(b"no zip")
    stranger = User.objects.create_user("nell")
    page = enter(stranger)
    page.goto("/workspaces/")
    page.get_by_role("link", name="Import a workspace").click()
    look(page, "workspace-imports-empty")
    page.get_by_label("File").set_input_files([broken])
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("alert").filter(has_text="broken.zip is no zip").wait_for()
    look(page, "workspace-imports-no-zip")
    page.get_by_label("File").set_input_files([zipped])
    page.get_by_label("Name of the new workspace").fill("Nell's trees")
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("Waiting for a worker").wait_for()
    look(page, "workspace-imports-queued")
    page.get_by_role("button", name="Cancel the import").click()
    page.get_by_text("cancelled by nell").wait_for()
    page.get_by_role("button", name="Retry the import").click()
    page.get_by_text("Waiting for a worker").wait_for()
    assert WorkspaceImportJob().do_one()
    page.get_by_role("link", name="Nell's trees").wait_for()
    look(page, "workspace-imports-done")
    narrow = enter(stranger, 400, "dark")
    narrow.goto("/workspace-imports/")
    look(narrow, "workspace-imports-done-400-dark")
    (made,) = WorkspaceImport.objects.values_list("ids", flat=True)
    page.goto(f"/runs/{made['run'][str(run.run.pk)]}/")
    page.get_by_text("Imported. Created by").first.wait_for()
