"""Tests of archives that no restoration may begin with: truncated, damaged, hostile."""

from __future__ import annotations

import hashlib
import json
import os
import random
import uuid
import zipfile

import pytest

from tests.helpers.luck import luck
from webapp.operations import schema
from workers.backup import archive
from workers.backup.archive import Archive, WrongContent, reading, writing
from workers.backup.errors import BackupError
from workers.backup.manifest import FORMAT, Manifest
from workers.backup.restoring import checked

LOG = f"runs/{uuid.UUID(int=7)}/events.jsonl"
TEXT = b"".join(b'{"seq": %d}\n' % n for n in range(5000))
WEIGHTS = random.Random(1).randbytes(100_000)
ARTIFACT = f"artifacts/{hashlib.sha256(WEIGHTS).hexdigest()}"


def entry(path, content):
    return {"path": path, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.fixture
def var(tmp_path, settings):
    """An empty data directory."""
    var = tmp_path / "var"
    var.mkdir()
    settings.GROVE_VAR, settings.RUNS_DIR = var, var / "runs"
    return var


@pytest.fixture
def backup(tmp_path):
    """A small archive of a log and an artifact."""
    sources = {LOG: TEXT, ARTIFACT: WEIGHTS}
    file = tmp_path / "grove.zip"
    with writing(file) as made:
        dump = made.add_database([b"a dump"])
        entries = []
        for path, content in sources.items():
            source = tmp_path / "source"
            source.write_bytes(content)
            entries.append(made.add(path, source, len(content)))
        made.finish(
            Manifest(
                grove="0.2.0", created="2026-11-28T00:00:00+00:00", var="/srv/grove",
                resolved_var="/srv/grove", postgres=18,
                key="", database=dump, migrations=sorted(schema.known()), tables={},
                files=entries, absent=[], left_out=[],
            )
        )  # fmt: skip
    return file


def rewritten(file, change, method=zipfile.ZIP_STORED):
    """Writes the archive again with a changed manifest."""
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    record = json.loads(members["manifest.json"])
    change(record)
    members["manifest.json"] = json.dumps(record).encode()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in members.items():
            made.writestr(name, data, method)


def with_file(path, content=TEXT):
    return lambda file: rewritten(file, lambda record: record["files"].append(entry(path, content)))


def with_record(change):
    return lambda file: rewritten(file, change)


def damage_member(file, name):
    """Changes bytes within the stored or compressed content of a member."""
    with zipfile.ZipFile(file) as opened:
        info = opened.getinfo(name)
    data = bytearray(file.read_bytes())
    start = data.index(name.encode(), info.header_offset) + len(name) + 20
    for where in range(start + 20, start + 30):
        data[where] ^= 0xFF
    file.write_bytes(data)


def member(content):
    sha256 = hashlib.sha256(content).hexdigest()
    return f"files/{sha256[:2]}/{sha256}"


def swapped(file):
    """Puts another content under the name of the log's, of the same size."""
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    members[member(TEXT)] = TEXT[::-1]
    with zipfile.ZipFile(file, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)


def a_bomb(file):
    """Replaces the log by a content that is compressed a thousand times, under its old size."""
    with zipfile.ZipFile(file) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    members[member(TEXT)] = bytes(8 * archive.BLOCK)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data)


def other_run(path):
    return f"runs/{uuid.UUID(int=8)}/{path}"


UNUSABLE = {
    "half of it": (lambda file: os.truncate(file, file.stat().st_size // 2), "is no whole backup"),
    "nothing of it": (lambda file: os.truncate(file, 0), "is no whole backup"),
    "a text": (lambda file: file.write_text("{}"), "is no whole backup"),
    "no file": (lambda file: file.unlink(), "cannot be read"),
    "a pipe": (lambda file: (file.unlink(), os.mkfifo(file)), "cannot be read: it is no file"),
    "a folder": (lambda file: (file.unlink(), file.mkdir()), "cannot be read"),
    "a damaged log": (lambda file: damage_member(file, member(TEXT)), "is damaged: runs/"),
    "a damaged artifact": (lambda file: damage_member(file, member(WEIGHTS)), "is damaged: artif"),
    "a damaged manifest": (lambda file: damage_member(file, "manifest.json"), "is damaged: manif"),
    "another content": (swapped, "is damaged: runs/"),
    "a bomb": (a_bomb, "is damaged: runs/"),
    "a method that takes memory": (
        lambda file: rewritten(file, lambda record: None, zipfile.ZIP_LZMA), "is damaged: manifest",
    ),
    "another zip": (
        lambda file: zipfile.ZipFile(file, "w").close(), "is no backup of Grove: it has no manif",
    ),
    "a newer layout": (with_record(lambda r: r.update(format=FORMAT + 1)), "has layout 2"),
    "a field is missing": (with_record(lambda r: r.pop("tables")), "manifest is damaged"),
    "a size below 0": (with_record(lambda r: r["database"].update(bytes=-5)), "is damaged"),
    "another size": (with_record(lambda r: r["files"][0].update(bytes=1)), "is damaged: runs/"),
    "a content is missing": (with_file(other_run("a"), b"nowhere"), "is damaged: runs/"),
    "a newer schema": (
        with_record(lambda r: r["migrations"].append(["experiments", "0999_new"])),
        "does not know: experiments.0999_new",
    ),
    "no room": (with_record(lambda r: r["database"].update(bytes=2**50)), "GiB free"),
    "no room for copies of one content": (
        with_record(
            lambda r: r["files"].extend(
                {**r["files"][0], "path": other_run(n), "bytes": 2**44} for n in range(64)
            )
        ),
        "GiB free",
    ),
    "a path upwards": (with_file("runs/../../etc/passwd"), "which no backup of Grove"),
    "a path upwards in a run": (with_file(other_run("../../../x")), "which no backup of Grove"),
    "an absolute path": (with_file("/etc/passwd"), "which no backup of Grove"),
    "a path that is not plain": (with_file(other_run("./x")), "which no backup of Grove"),
    "a run without id": (with_file("runs/x/y"), "which no backup of Grove"),
    "another folder": (with_file("postgres/data/pg_hba.conf"), "which no backup of Grove"),
    "an artifact of another name": (with_file(f"artifacts/{'0' * 64}"), "which no backup of Grov"),
    "a path twice": (with_file(LOG), "which no backup of Grove"),
    "a file as a folder": (with_file(f"{LOG}/x"), "which no backup of Grove"),
    "a name that is too long": (with_file(other_run("x" * 256)), "which no backup of Grove"),
    "a name with a zero": (with_file(other_run("x\0y")), "which no backup of Grove"),
    "a name that is no text": (with_file(other_run("\ud800")), "manifest is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("fault", UNUSABLE)
def test_an_unusable_archive_is_refused_before_anything_is_written(backup, var, fault):
    change, sentence = UNUSABLE[fault]
    change(backup)
    with pytest.raises(BackupError, match=sentence), checked(backup):
        raise AssertionError("it was taken")
    assert not list(var.iterdir())


def test_an_archive_cut_or_changed_anywhere_is_refused_or_whole(backup, var):
    draw = luck()
    whole = backup.read_bytes()
    with checked(backup) as opened:
        before = opened.manifest
    for _ in range(30):
        where = draw.randrange(len(whole))
        cut = bytearray(whole)
        cut[where] ^= 1 << draw.randrange(8)
        backup.write_bytes(cut if draw.random() < 0.7 else whole[:where])
        try:
            with checked(backup) as opened:
                found = opened.manifest
        except BackupError:
            continue
        assert found == before, f"byte {where}"  # a field of the zip that nothing reads


def test_a_file_that_shrinks_or_changes_meanwhile_is_reported(tmp_path):
    source = tmp_path / "log"
    source.write_bytes(b"12345")
    with (
        pytest.raises(WrongContent, match="lost its last 2 bytes"),
        writing(tmp_path / "a") as made,
    ):
        made.add(LOG, source, 7)

    class Changing(Archive):
        def add_known(self, path, blocks, size, sha256):
            source.write_bytes(b"54321")
            return super().add_known(path, blocks, size, sha256)

    with zipfile.ZipFile(tmp_path / "b", "w") as file, pytest.raises(WrongContent, match="SHA-256"):
        Changing(file).add(LOG, source, 5)
    assert not (tmp_path / "a").exists()


def test_an_archive_appears_whole_or_not_at_all(backup, tmp_path):
    before = backup.read_bytes()
    with pytest.raises(BackupError, match="exists by now"), writing(backup) as made:
        made.add_database([b"x"])
    with pytest.raises(RuntimeError), writing(tmp_path / "other.zip") as made:
        made.add_database([b"x"])
        raise RuntimeError
    assert backup.read_bytes() == before
    assert not list(tmp_path.glob(".*.part")) and not (tmp_path / "other.zip").exists()
    with reading(backup) as opened:
        assert [one.path for one in opened.manifest.files] == [LOG, ARTIFACT]
