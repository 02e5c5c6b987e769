"""`grove doctor`: checks of whether this machine can run what is installed on it.

The checks of the engine are those of `python -m engine doctor`, the server's those of
`manage.py doctor`; each runs in a process of its own and only if its extra is installed.
Waits: for the two processes (`SECONDS` each) and for the server's response (`SERVER_SECONDS`).
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec

from webapp import __version__
from webapp.client import local, login
from webapp.client.client import Grove
from webapp.client.requirements import unmet
from webapp.client.types import Refused

SECONDS = 300.0
"""With a cold disk cache, importing torch and vLLM takes a minute."""
SERVER_SECONDS = 5.0
OLDEST_PYTHON = (3, 11)
OK, ABSENT, WARNING, FAILED = "ok", "absent", "warning", "failed"
_MARKER_REQUIREMENT = {"engine": "ray~=", "server": "channels~="}
"""A requirement that no other extra has: an extra without it was never installed."""


class Check(msgspec.Struct, frozen=True):
    """One line of the result. `status` is ok, absent (an optional part), warning or failed."""

    name: str
    status: str
    text: str
    remedy: str = ""


def examine(as_json: bool = False) -> int:
    """Prints every check, or one JSON object; returns 1 if one failed, else 0."""
    checks = []
    for check in _checks():
        checks.append(check)
        if not as_json:
            print(line_of(check), flush=True)
    failed = sum(check.status == FAILED for check in checks)
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [msgspec.to_builtins(c) for c in checks]}))
    else:
        print(f"{failed} of {len(checks)} checks failed" if failed else "No problems found")
    return 1 if failed else 0


def line_of(check: Check) -> str:
    """Returns a check as printed: status, name and text, the remedy below them."""
    remedy = f"\n{'':9}{check.remedy}" if check.remedy and check.status != OK else ""
    return f"{check.status:9}{check.name}: {check.text}{remedy}"


def _checks() -> Iterator[Check]:
    yield _python()
    yield _packages("")
    for extra, more in (("engine", _engine), ("server", _server)):
        yield (check := _packages(extra))
        if check.status == OK:
            yield from more()
    yield _login()


def _python() -> Check:
    text = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info >= OLDEST_PYTHON:
        return Check("python", OK, text)
    return Check("python", FAILED, text, "install Python 3.11 or newer")


def _packages(extra: str) -> Check:
    """Checks that an extra is installed in the versions that it declares."""
    name = f"grove-rl[{extra}]" if extra else "grove-rl"
    problems = unmet(extra)
    if not problems:
        return Check(name, OK, __version__)
    remedy = f"pip install '{name}'"
    missing = {one.requirement for one in problems if one.installed is None}
    if any(requirement.startswith(_MARKER_REQUIREMENT.get(extra, " ")) for requirement in missing):
        return Check(name, ABSENT, "not installed", remedy)
    return Check(name, FAILED, ", ".join(map(str, problems)), remedy)


def _engine() -> Iterator[Check]:
    """Yields the results of `engine doctor` as checks."""
    report, error = _json_of(local.command(local.ENGINE, ["doctor", "--json"]))
    if report is None:
        yield Check("engine", FAILED, error, "run: grove engine doctor")
        return
    yield Check("torch", OK, report["torch"]["version"])
    yield _gpus(report["torch"]["cuda_devices"])
    address = report["ray"]["address"] or "unset: Ray is started locally"
    yield Check("ray", OK, f"{report['ray']['version']}, RAY_ADDRESS {address}")
    vllm, sandbox = report["vllm"], report["sandbox"]
    if vllm["works"]:
        yield Check("vllm", OK, f"{vllm['version']}, platform {vllm['platform']}")
    else:
        yield Check("vllm", ABSENT, vllm["reason"])
    if not sandbox["works"]:
        yield Check("sandbox", FAILED, sandbox["reason"])
    elif sandbox["tier"] != "full":
        remedy = "run as root, or allow this account to create user namespaces"
        yield Check("sandbox", WARNING, f"tier {sandbox['tier']}: {_walls(sandbox)}", remedy)
    else:
        yield Check("sandbox", OK, f"tier full: {_walls(sandbox)}")


def _walls(sandbox: dict[str, Any]) -> str:
    return ", ".join(sandbox["walls"])


def _gpus(seen_by_torch: int) -> Check:
    driver = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()
    if driver and not seen_by_torch:
        remedy = "install the CUDA build of torch, or check CUDA_VISIBLE_DEVICES"
        return Check("gpus", WARNING, "NVIDIA driver present, but torch sees no GPU", remedy)
    return Check("gpus", OK, f"{seen_by_torch} CUDA devices")


def _server() -> Iterator[Check]:
    """Yields the results of `manage.py doctor` as checks."""
    report, error = _json_of(local.command(local.SERVER, ["doctor", "--json"]))
    if report is None:
        yield Check("server", FAILED, error, "run: grove manage doctor")
        return
    yield from msgspec.convert(report, list[Check])


def _json_of(command: list[str]) -> tuple[Any, str]:
    """Returns the JSON that a process printed, with any exit status; else None and the reason."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"no result within {SECONDS:.0f} s"
    try:
        return json.loads(done.stdout), ""
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return None, lines[-1] if lines else f"exit status {done.returncode}"


def _login() -> Check:
    """Checks the server that the client's verbs use; the other verbs need none."""
    try:
        address, token = login.credentials()
    except login.NotLoggedIn as error:
        return Check("login", ABSENT, "none", str(error))
    try:
        with Grove(address, token, timeout=SERVER_SECONDS) as grove:
            projects = sum(1 for _ in grove.projects())
    except (Refused, httpx.HTTPError, OSError, ValueError) as error:
        return Check("login", WARNING, f"{address}: {error}", "start the server, or: grove login")
    return Check("login", OK, f"{address}: {projects} projects")
