"""Tests of imports in a browser: of a GGUF file, with live progress, and of a pretrained model."""

from __future__ import annotations

import pytest

from tests.conftest import var_settings
from tests.e2e.test_models import enter, look
from tests.helpers.gguf_uploads import a_header, a_tiny_gguf
from webapp.registry.model_imports import states
from webapp.registry.models import ModelImport, ModelVersion
from workers.jobs.model_imports import ModelImportJob

__all__ = ["enter"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def works(server, settings):
    """Does the next import as a worker next to the server."""
    for name, value in var_settings(server.var).items():
        setattr(settings, name, value)
    return ModelImportJob().do_one


@pytest.mark.large
def test_a_gguf_file_is_uploaded_and_its_conversion_watched(enter, run, tmp_path, works, faults):
    page = enter(run.user)
    page.goto("/models/")
    page.get_by_role("link", name="Add a model").click()
    page.get_by_label("Name").fill("tiny")
    broken, file = tmp_path / "broken.gguf", a_tiny_gguf(tmp_path / "tiny.Q4_1.gguf")
    broken.write_bytes(b"PK\x03\x04")
    for files, why in (([broken], "it does not start with GGUF"), ([file, broken], "alone")):
        page.get_by_label("Files").set_input_files(files)
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("alert").filter(has_text=why).wait_for()
    look(page, "new-model-no-gguf")
    page.get_by_label("Files").set_input_files([file])
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("Waiting for a worker").wait_for()
    look(page, "imports-queued")

    states.renew(states.take(), 0.42, "Converting")
    page.get_by_text("Converting").wait_for()
    assert page.locator("#imports progress").evaluate("bar => bar.value") == 0.42
    narrow = enter(run.user, 400, "dark")
    narrow.goto("/models/")
    narrow.get_by_text("Converting").wait_for()
    look(narrow, "imports-running-400-dark")
    page.get_by_role("button", name="Cancel the import").click()
    page.get_by_text("cancelled by").wait_for()
    page.get_by_role("button", name="Retry the import").click()
    page.get_by_text("Waiting for a worker").wait_for()
    assert works()
    page.locator("#imports").get_by_role("link", name="tiny v1").wait_for()
    look(page, "imports-done")
    page.locator("#imports").get_by_role("link", name="tiny v1").click()
    page.get_by_role("heading", name="Origin").wait_for()
    page.get_by_text("the GGUF file tiny.Q4_1.gguf").first.wait_for()
    look(page, "version-of-gguf")
    narrow.goto(page.url)
    look(narrow, "version-of-gguf-400-dark")
    assert ModelVersion.objects.get().metadata["origin"]["kind"] == "gguf"


@pytest.mark.large
def test_a_file_that_cannot_be_converted_shows_why(enter, run, tmp_path, works):
    page = enter(run.user)
    page.goto("/models/new/")
    page.get_by_label("Name").fill("tiny")
    (tmp_path / "broken.gguf").write_bytes(a_header())
    page.get_by_label("Files").set_input_files([tmp_path / "broken.gguf"])
    page.get_by_role("button", name="Upload").click()
    page.get_by_text("Waiting for a worker").wait_for()
    assert works()
    page.locator("#imports p", has_text="broken.gguf: ").wait_for()
    look(page, "imports-failed")
    assert not ModelVersion.objects.exists()


@pytest.mark.large
def test_a_pretrained_model_is_chosen_with_its_licence(enter, run, faults):
    page = enter(run.user)
    page.goto("/models/")
    page.get_by_role("link", name="Add a pretrained model").first.click()
    look(page, "pretrained")
    page.get_by_role("link", name="Apache-2.0").wait_for()
    gemma = page.get_by_role("form", name="Add Gemma 3 270M")
    gemma.get_by_role("button").click()
    assert gemma.get_by_role("checkbox").evaluate("box => box.validity.valueMissing")
    assert not ModelImport.objects.exists()
    gemma.get_by_role("checkbox").check()
    gemma.get_by_label("Name").fill("gemma")
    gemma.get_by_role("button").click()
    page.get_by_text("Waiting for a worker").wait_for()
    assert ModelImport.objects.get().name == "gemma"
    narrow = enter(run.user, 400, "dark")
    narrow.goto("/models/pretrained/")
    look(narrow, "pretrained-400-dark")
