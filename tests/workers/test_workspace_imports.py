"""Tests of the process of an import of a workspace: its limits, and what is left after them."""

import pytest
from django.db import connection

from tests.helpers.builders import a_cast
from tests.helpers.workspace_zips import a_zip_upload, exported
from webapp.offboarding.imports.requests import request_import
from webapp.offboarding.models import WorkspaceImport
from workers.jobs.workspace_imports import WorkspaceImportJob

pytestmark = [pytest.mark.large, pytest.mark.django_db(transaction=True)]


def of_this_test(monkeypatch, var):
    """Sets the environment of the process to the test's database and directory."""
    parts = connection.settings_dict
    url = f"postgresql://{parts['USER']}@/{parts['NAME']}?host={parts['HOST']}"
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("GROVE_VAR", str(var))


def test_a_process_beyond_its_memory_fails_the_import_which_can_be_retried(
    var_directory, settings, monkeypatch, tmp_path
):
    cast = a_cast()
    of_this_test(monkeypatch, var_directory)
    one = request_import(
        a_zip_upload(cast.alice, exported(cast, tmp_path / "x.zip").read_bytes()), cast.alice
    )
    job = WorkspaceImportJob()
    settings.IMPORT_MEMORY_BYTES = 48 << 20
    assert job.do_one()
    one.refresh_from_db()
    assert one.state == "failed" and "GROVE_IMPORT_MEMORY_MIB" in one.error, one.error
    assert one.can_retry and not WorkspaceImport.objects.exists()
    assert [path.name for path in settings.UPLOADS_DIR.iterdir()] == []
