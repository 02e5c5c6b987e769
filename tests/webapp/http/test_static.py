"""Tests of static files: always whole, and never a mixture of two versions."""

import asyncio
import posixpath
import re

import httpx
import pytest
from django.conf import settings as project

from webapp.config.asgi import Application
from webapp.http.fingerprint import fingerprint
from webapp.http.module_preload import imported


@pytest.fixture
def directory(settings, tmp_path):
    """Static files of the test's own, in a directory that Django searches."""
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "page.js").write_text("export const one = 1;")
    settings.STATICFILES_DIRS = [tmp_path]
    return tmp_path


def fetch(path: str, method: str = "GET", **headers: str) -> httpx.Response:
    """The server's response to an address, without a socket."""

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=Application()), base_url="http://testserver"
        ) as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(answer())


def address(name: str) -> str:
    return project.STATIC_URL + name


def test_a_file_that_is_edited_while_it_is_served_comes_whole(directory):
    assert fetch(address("js/page.js")).content == b"export const one = 1;"
    (directory / "js" / "page.js").write_text("export const one = 1;\nexport const two = 2;")
    answer = fetch(address("js/page.js"))
    assert answer.content.endswith(b"two = 2;")
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_a_file_that_is_added_or_removed_while_others_are_served(directory):
    assert fetch(address("js/new.js")).status_code == 404
    (directory / "js" / "new.js").write_text("1")
    assert fetch(address("js/new.js")).status_code == 200
    (directory / "js" / "new.js").unlink()
    assert fetch(address("js/new.js")).status_code == 404


def test_an_unchanged_resource_is_not_sent_again(directory):
    first = fetch(address("js/page.js"))
    again = {"If-Modified-Since": first.headers["Last-Modified"]}
    answer = fetch(address("js/page.js"), **again)
    assert answer.status_code == 304 and not answer.content


def test_a_browser_keeps_what_its_address_names_by_content(directory):
    assert "immutable" in fetch(address("js/page.js")).headers["Cache-Control"]


def test_files_are_only_read_and_guarded_by_headers(directory):
    assert fetch(address("js/page.js"), "POST").status_code == 405
    head = fetch(address("js/page.js"), "HEAD")
    assert head.content == b"" and int(head.headers["Content-Length"]) > 0
    assert head.headers["X-Content-Type-Options"] == "nosniff"
    assert head.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_range_request_returns_a_part_of_a_file(directory):
    answer = fetch(address("js/page.js"), Range="bytes=7-11")
    assert (answer.status_code, answer.content) == (206, b"const")


def test_a_page_names_all_modules_that_it_needs():
    root = project.BASE_DIR / "static"
    result = imported("js/pages/run-page.js")
    assert len(result) == len(set(result)) > 30 and all((root / path).is_file() for path in result)
    assert {"js/stream/fold.js", "vendor/d3-hierarchy/d3-hierarchy.min.js"} < set(result)
    assert not {"js/run/run-charts.js", "js/node/node-panel.js"} & set(result), (
        "they come after the trees"
    )
    scripts = [path for path in ("js/pages/run-page.js", *result) if path[:2] == "js"]
    named = {
        posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        for path in scripts
        for name in re.findall(r'from "(\.{1,2}/[^"]+)"', (root / path).read_text())
    }
    assert named <= {*result, "js/pages/run-page.js"}


@pytest.mark.parametrize(
    "name",
    ["js", "js/", "../settings.py", "%2e%2e/manage.py", "js/%00", "x" * 5000, "js%5Cpage.js"],
)
def test_only_files_of_these_directories_are_served(directory, name):
    assert fetch(address(name)).status_code in (400, 404)


def test_another_content_or_name_is_another_address(tmp_path):
    file = tmp_path / "a.js"
    file.write_text("1")
    first = fingerprint(tmp_path)
    file.touch()
    assert fingerprint(tmp_path) == first and re.fullmatch("[0-9a-f]{12}", first)
    file.write_text("2")
    second = fingerprint(tmp_path)
    file.rename(tmp_path / "b.js")
    assert len({first, second, fingerprint(tmp_path)}) == 3


def test_pages_name_static_files_by_their_content_only(client, db):
    content = client.get("/sign-in/").content.decode()
    named = re.findall(r'(?:src|href)="(/static/[^"]+)"', content)
    assert named and all(path.startswith(project.STATIC_URL) for path in named)
    assert fingerprint(project.BASE_DIR / "static") in project.STATIC_URL
    for path in named:
        assert fetch(path).status_code == 200, path
