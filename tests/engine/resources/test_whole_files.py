"""Tests of files that are written whole, in the engine and in the client."""

import os
import re
import stat
import subprocess
import sys
import threading

import pytest

from engine.resources import whole_files as of_engine
from webapp.client import whole_files as of_client

BOTH = pytest.mark.parametrize("module", [of_engine, of_client], ids=["engine", "client"])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(module, path, text):
    with module.whole_file(path) as file:
        file.write(text)


@BOTH
def test_a_file_appears_when_all_is_written_and_not_if_that_fails(module, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), module.whole_file(path) as file:
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == b"old"
        raise RuntimeError
    assert path.read_bytes() == b"old" and names(tmp_path) == ["rows"]
    write(module, path, b"new")
    assert path.read_bytes() == b"new" and names(tmp_path) == ["rows"]


@BOTH
def test_a_link_stays_one_and_its_target_is_written(module, tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/rows")  # which does not exist yet
    for text in (b"one", b"two"):
        write(module, link, text)
        assert link.is_symlink() and (tmp_path / "there" / "rows").read_bytes() == text
    assert names(tmp_path) == ["link", "there"]


@BOTH
def test_what_can_be_no_file_is_refused_by_its_name_and_stays(module, tmp_path):
    folder, loop, lost = tmp_path / "folder", tmp_path / "loop", tmp_path / "none" / "rows"
    folder.mkdir()
    loop.symlink_to(loop)
    for path in (folder, loop, lost):
        with pytest.raises(OSError, match=re.escape(repr(str(path)))):
            write(module, path, b"rows")
    assert folder.is_dir() and loop.is_symlink() and names(tmp_path) == ["folder", "loop"]


@BOTH
def test_a_full_disk_is_named_with_the_file(module, tmp_path):
    path = tmp_path / "rows"
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8)); from pathlib import Path; "
        f"from {module.__name__} import whole_file\n"
        f"with whole_file(Path({str(path)!r})) as file: file.write(b'x' * 100)"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith(f"File too large: {str(path)!r}")
    assert names(tmp_path) == []


@BOTH
def test_a_fifo_stays_one_and_is_written_through(module, tmp_path):
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()), daemon=True)
    reader.start()
    write(module, fifo, b"rows")
    reader.join(60)
    assert read == [b"rows"] and stat.S_ISFIFO(fifo.stat().st_mode)


@BOTH
@pytest.mark.parametrize("name", ["/dev/null", "/dev/stdout"])
def test_a_device_stays_one(module, name, tmp_path):
    before = os.lstat(name)
    code = f"""
from pathlib import Path
from {module.__name__} import whole_file
with whole_file(Path({name!r})) as file:
    file.write(b"rows")
"""
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    after = os.lstat(name)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert (tmp_path / "out").read_bytes() == (b"rows" if name == "/dev/stdout" else b"")


def test_that_a_file_can_be_written_is_seen_before(tmp_path):
    of_engine.check_writable(tmp_path / "new" / "rows")
    assert (tmp_path / "new" / "rows").read_bytes() == b""
    with pytest.raises(OSError, match="rows"):
        of_engine.check_writable(tmp_path / "new" / "rows" / "below")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    of_engine.check_writable(fifo)  # without a reader it would wait for one
