"""Download of one wheel by pip, with the index, proxy and certificates of the user's settings.

Invariants: what `download` returns has the catalogue's SHA-256, whatever pip checked; nothing of
the wheel is installed or run; no pip of another version than `PIP` connects to an index, none reads
modules that the environment names, and none outlives this process. Waits: for pip, as long as bytes
arrive at least every `STALL_SECONDS`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine.config.pretrained import Wheel
from engine.policy.models.packages.errors import InstallError

PIP = "26.3"
"""The version of pip that downloads, as in constraints.txt and pyproject.toml: earlier ones have
known faults in what they do with an index's answers."""
_REMEDY = (
    f"in Grove's environment run: python -m ensurepip && python -m pip install pip=={PIP} (in a "
    "checkout: make run)"
)
STALL_SECONDS = 300.0
POLL_SECONDS = 0.1
PYPI = "https://pypi.org/simple"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_PIP_PREFIX = "pip-"
"""Prefix of the folders in which a pip works; one that was killed leaves its folder."""
_TAIL_BYTES = 1 << 16
_UNREACHABLE = re.compile(
    r"Retrying \(|Max retries exceeded|Connection(Reset|Refused|) ?Error|Connection broken|"
    r"IncompleteRead|ReadTimeoutError|timed out|ProxyError|SSLError|Could not fetch URL|"
    r"Connection interrupted|[Ff]ailed to connect|not enough bytes were received"
)


def download(
    wheel: Wheel,
    folder: Path,
    on_bytes: Callable[[int], None],
    stall_seconds: float = STALL_SECONDS,
) -> Path:
    """Downloads a wheel into `folder`, where what an earlier call left is used again, and returns
    its path; `on_bytes` gets the number of bytes that are there.

    Raises:
        InstallError: no pip or another one, no connection, no such package, another hash, a full
            disk.
        OSError: the folder cannot be written to.
    """
    path = folder / f"{wheel.distribution}-{wheel.version}.whl"
    if path.is_file() and sha256_of(path) == wheel.sha256:
        on_bytes(wheel.bytes)
        return path
    _require_pip()
    with tempfile.TemporaryDirectory(dir=folder, prefix=_PIP_PREFIX) as work:
        downloaded = _pip_download(wheel, Path(work), on_bytes, stall_seconds)
        if (received := sha256_of(downloaded)) != wheel.sha256:
            raise _wrong_hash(wheel, received)
        downloaded.replace(path)
    on_bytes(wheel.bytes)
    return path


def _require_pip() -> None:
    """Raises `InstallError` unless the pip that `_pip` runs is there and of the version `PIP`."""
    # It is run and not looked for: where this process finds the module pip, setuptools leaves its
    # own distutils out for good (Python 3.11), and an import of vLLM fails later.
    reply = subprocess.run([*_pip(), "--version"], capture_output=True, text=True, check=False)
    if "No module named pip" in reply.stderr:
        raise InstallError(f"Grove's Python has no pip, which downloads packages; {_REMEDY}")
    version = re.match(r"pip (\S+)", reply.stdout)
    found = version[1] if version else "one that does not start"
    if found != PIP:
        raise InstallError(
            f"the pip of Grove's Python is {found}, and packages are downloaded by pip {PIP} "
            f"alone; {_REMEDY}"
        )


def _pip() -> list[str]:
    """Returns the command of this Python's own pip: none of PYTHONPATH, nor of the folder."""
    return [sys.executable, "-E", "-P", "-u", "-m", "pip"]


def sha256_of(path: Path) -> str:
    """Returns the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pip_download(
    wheel: Wheel, work: Path, on_bytes: Callable[[int], None], stall_seconds: float
) -> Path:
    temporary, result = work / "tmp", work / "result"
    temporary.mkdir()
    requirements = work / "requirements.txt"
    requirements.write_text(f"{wheel.distribution}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    command = [
        *(*_pip(), "download", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--no-cache-dir", "--no-input", "--progress-bar", "off"),
        *("--disable-pip-version-check", "--dest", str(result), "-r", str(requirements)),
    ]
    with (work / "output").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(temporary)},
            preexec_fn=_end_with_parent,
        )
    try:
        status = _wait(process, temporary, on_bytes, stall_seconds)
    finally:
        process.kill()
        process.wait()
    text = _tail(work / "output")
    if status is None:
        raise InstallError(
            f"{wheel.distribution}: no data from {_index(text)} for {stall_seconds:.0f} s; run the "
            "command again"
        )
    downloaded = list(result.glob("*.whl"))
    if status or len(downloaded) != 1:
        raise _failure(wheel, text)
    return downloaded[0]


def _wait(
    process: subprocess.Popen[bytes],
    temporary: Path,
    on_bytes: Callable[[int], None],
    stall_seconds: float,
) -> int | None:
    """Returns pip's exit status; None if no byte arrived for `stall_seconds`."""
    received, since = 0, time.monotonic()
    while True:
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        now = bytes_of_wheel(temporary, received)
        if now != received:
            received, since = now, time.monotonic()
            on_bytes(received)
        elif time.monotonic() - since > stall_seconds:
            return None


def bytes_of_wheel(temporary: Path, before: int) -> int:
    """Returns the bytes of the wheel that pip downloads into a folder of its own below `temporary`;
    `before` if pip moves or removes it meanwhile."""
    try:
        return max((path.stat().st_size for path in temporary.glob("*/*.whl")), default=0)
    except FileNotFoundError:
        return before


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _failure(wheel: Wheel, text: str) -> InstallError:
    """Returns the error that pip's output describes."""
    index, name = _index(text), f"{wheel.distribution} {wheel.version}"
    if "DO NOT MATCH THE HASHES" in text:
        received = re.search(r"Got\s+([0-9a-f]{64})", text)
        return _wrong_hash(wheel, received[1] if received else "another")
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return InstallError(
            f"{name}: the disk is full; make room, or name another folder with --to or "
            "GROVE_MODELS_DIR, and run the command again: it goes on where it stopped"
        )
    if _UNREACHABLE.search(text):
        return InstallError(
            f"{name}: no connection to the package index {index}; check the network, or name a "
            "mirror or proxy in pip's settings (pip config set global.index-url URL, "
            "PIP_INDEX_URL, HTTPS_PROXY), and run the command again"
        )
    if "No matching distribution found" in text:
        return InstallError(
            f"{name}: the package index {index} has no such package or version, or does not "
            "answer; name one that has it in pip's settings (pip config set global.index-url URL, "
            "or PIP_INDEX_URL)"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["no output"]
    return InstallError(f"{name}: pip could not download it from {index}: {errors[-1][:300]}")


def _wrong_hash(wheel: Wheel, received: str) -> InstallError:
    return InstallError(
        f"{wheel.distribution} {wheel.version}: the downloaded file has SHA-256 {received}, not "
        f"{wheel.sha256}; it was changed or damaged on its way and is not used. Run the command "
        "again, with another index if that does not help"
    )


def _index(text: str) -> str:
    """Returns the index that pip named; it does so, without passwords, where it is not PyPI."""
    named = re.search(r"^Looking in indexes: (.+)$", text, re.MULTILINE)
    return named[1].strip() if named else PYPI


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def remove_stale(folder: Path) -> None:
    """Removes what killed downloads left in `folder`."""
    for stale in folder.glob(f"{_PIP_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)
