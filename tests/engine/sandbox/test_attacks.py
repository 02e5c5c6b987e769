"""Tests of every attack of the corpus, against both tiers, as root and as a normal user.

No attack is rewarded, damages anything or leaves a process behind; the service is alive and has
spent hardly any time of its own on it, and the next honest programs are judged right. The four
services are attacked concurrently, because most attacks wait; on each service the attacks run one
after another, so that leftovers and damage belong to the current one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.engine.sandbox.attacked import PROBLEMS
from tests.helpers.large import large_but
from tests.helpers.waiting import patience

pytestmark = pytest.mark.service
ATTACKS = sorted(Path(__file__).with_name("attacks").glob("[!_]*.py"))
ROOT = Path(__file__).resolve().parents[3]
SERVICES = [(tier, who) for who in ("root", "user") for tier in ("full", "restricted")]
NOBODY = ("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups")
PACKAGES = os.pathsep.join(path for path in sys.path if "site-packages" in path)
SECONDS = 60
OWNER_SECONDS = 3.0
"""CPU seconds that the service itself may spend on one attack."""


def header(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)


class Attacked:
    """A service under attack."""

    def __init__(self, tier: str, start: tuple[str, ...]):
        command = [*start, "-m", "tests.engine.sandbox.attacked", tier]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": PACKAGES},
        )  # fmt: skip
        self.hello = self._answer()

    def attack(self, file: Path) -> dict[str, object]:
        outcome = header(file)
        order = {"path": outcome["path"], "program": file.read_text(), "waits": "waits" in outcome}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, object]:
        line = self.process.stdout.readline()
        assert line, "the attacked service has died"
        return json.loads(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(SECONDS * patience())


def as_a_user() -> tuple[str, ...]:
    """Command prefix that starts Python as an unprivileged user; skips the test if impossible."""
    if os.getuid() != 0:
        return (sys.executable,)
    expected = (
        f"import sys, psutil, pydantic, subprocess\nassert sys.version_info[:2] == "
        f"{sys.version_info[:2]}\nsubprocess.run([sys.executable, '-c', ''], check=True)"
    )
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin")):
        if python and shutil.which("setpriv"):
            done = subprocess.run(
                [*NOBODY, python, "-c", expected],
                env={"PYTHONPATH": PACKAGES},
                cwd=ROOT,
                capture_output=True,
            )
            if done.returncode == 0:
                return (*NOBODY, python)
    pytest.skip("no setpriv, or no interpreter that a normal user may start")


class Campaign:
    """The attacks on one service, one after another, in a thread of their own."""

    def __init__(self, tier: str, who: str, paths: list[Path]):
        if who == "root" and os.getuid() != 0:
            pytest.skip("the tests are run as a normal user")
        self._tier, self._start = tier, (sys.executable,) if who == "root" else as_a_user()
        self._results: dict[Path, Future] = {path: Future() for path in paths}
        self._thread = ThreadPoolExecutor(1)
        self._thread.submit(self._run)

    def result(self, path: Path) -> dict[str, object]:
        return self._results[path].result()

    def close(self) -> None:
        self._thread.shutdown()

    def _run(self) -> None:
        service = None
        for path, result in self._results.items():
            try:
                service = service or self._started()
                result.set_result(service.attack(path))
            except Exception as error:
                result.set_exception(error)
                service = None  # a dead service is replaced for the next attack
        if service:
            service.close()

    def _started(self) -> Attacked:
        service = Attacked(self._tier, self._start)
        assert service.hello["tier"] == self._tier, service.hello
        assert service.hello["honest"] == "passed"
        return service


@pytest.fixture(scope="module")
def campaigns(request):
    """Starts the campaigns of the selected tests; returns an attack's result on a service."""
    expected: dict[tuple[str, str], list[Path]] = {}
    for item in request.session.items:
        if "campaigns" in getattr(item, "fixturenames", ()):
            outcome = item.callspec.params
            expected.setdefault(outcome["service"], []).append(outcome["path"])
    running: dict[tuple[str, str], Campaign] = {}
    skipped: dict[tuple[str, str], str] = {}
    for service, paths in expected.items():
        try:
            running[service] = Campaign(*service, paths)
        except pytest.skip.Exception as reason:
            skipped[service] = str(reason)

    def result(service, path):
        if service in skipped:
            pytest.skip(skipped[service])
        return running[service].result(path)

    yield result
    for campaign in running.values():
        campaign.close()


def test_the_corpus_is_large_and_every_attack_says_what_it_tries():
    assert len(ATTACKS) >= 60
    tried = set()
    for path in ATTACKS:
        result = header(path)
        assert {"tries", "path", "observed"} <= set(result), path.name
        assert result["path"] in PROBLEMS, path.name
        assert result.get("waits", "yes") == "yes", path.name
        assert not {"passed", "sandbox_failure"} & set(result["observed"].split(", ")), path.name
        tried.add(result["tries"])
    assert len(tried) == len(ATTACKS)


PAIRS = [(path, service) for path in ATTACKS for service in SERVICES]
KEPT = [(path, SERVICES[place % 2]) for place, path in enumerate(ATTACKS[::2])]
KEPT += [(path, SERVICES[2 + place % 2]) for place, path in enumerate(ATTACKS[1::16])]
"""Every second attack on one tier as root, and a few of the others as a normal user."""


@pytest.mark.parametrize(
    ("path", "service"),
    large_but(KEPT, PAIRS),
    ids=lambda value: value.stem if isinstance(value, Path) else " as ".join(value),
)
def test_an_attack_is_contained_and_earns_nothing(campaigns, service, path):
    outcome, result = header(path), campaigns(service, path)
    assert result["fraction"] == 0.0, result
    assert result["verdict"] in outcome["observed"].split(", "), result
    assert result["leftovers"] == result["damage"] == []
    assert result["zygotes_lived"], result
    assert result["seconds"] < OWNER_SECONDS, result
    assert result["honest"] == ["passed"] * 3, result
