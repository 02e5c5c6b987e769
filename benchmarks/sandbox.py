"""Speed of program verification in the sandbox, against other ways to run programs.

The same programs, each with 10 calls of its function, run in sequence in one slot of the sandbox
with the best tier of this host, and by: a fresh unisolated `python -I -S` for each; a fresh python
in bubblewrap for each, if bwrap is installed; and multiprocessing with a Manager for each, in a
process that holds a model of 0.8 GB, as in the authors' release of MARS2.
Ways take turns in rounds, and a ratio is the median over the rounds, so that varying load affects
all equally. These programs are right and proved stateless, so one run in one process is valid for
all calls. Wrong ones, which fail all their tests, take turns too: a plain function, whose batched
run is valid as well, against the same fresh process; and one with state, each of whose ten tests
runs alone, against ten fresh processes, one for each test.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks import at_least
from engine.config.sandbox import SandboxConfig
from engine.problems.problem import CallTest, Problem
from engine.sandbox.host.process import ZYGOTE
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verify import verify

GOALS = {
    "vs_fresh_python": at_least(2.5),
    "vs_manager": at_least(10),
    "wrong_vs_fresh_python": at_least(2.5),
    "wrong_with_state_vs_fresh_python_alone": at_least(2.5),
}
SUMMARY = "programs per second in the sandbox, against fresh processes, bubblewrap and a Manager"
SLOW = {"manager", "fresh_python_alone"}  # they are run less often
LAYERS = Path(__file__).with_name("layers.py")
MODEL_BYTES, LAYER_BYTES = 800_000_000, 8_000_000
TESTS = tuple(CallTest(([3, n, 1], n), [3 * n, n * n, n]) for n in range(10))
PROBLEM = Problem("scale", "Scale.", "solve", TESTS[:3], TESTS[3:])
SOURCE = "# program {}\ndef solve(row, factor):\n    return [x * factor for x in row]\n"
WRONG = "# program {}\ndef solve(row, factor):\n    return row[:factor]\n"
WRONG_WITH_STATE = "# program {}\nseen = []\ndef solve(row, factor):\n    return row[:factor]\n"
CALL = """
import json, sys
program, calls = json.load(sys.stdin)
names = {}
exec(program, names)
print(json.dumps([names["solve"](*arguments) for arguments in calls]))
"""

Verify = Callable[[str], bool]
_numbers = count()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--programs", type=int, default=60, help="programs per way and round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all ways")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Returns ratios, figures and versions; seconds are wall time, by default per program."""
    import torch

    model = [torch.ones(LAYER_BYTES // 4) for _ in range(MODEL_BYTES // LAYER_BYTES)]
    config = SandboxConfig(workers=1, cpu_seconds=10, wall_seconds=20)
    with Sandbox(config) as sandbox:
        ways = dict(_ways(sandbox))
        wrong = dict(_wrong(sandbox))
        seconds: dict[str, list[list[float]]] = {name: [] for name in (*ways, *wrong)}
        for _ in range(arguments.rounds):
            for name, way in ways.items():
                runs = _runs_of(name, arguments.programs)
                seconds[name].append([_timed(way) for _ in range(runs)])
            for name, (way, source) in wrong.items():
                runs = _runs_of(name, arguments.programs)
                seconds[name].append([_timed(way, source, False) for _ in range(runs)])
        figures = _figures(seconds)
        tier, walls = sandbox.tier(), sandbox.walls()
    del model
    medians = {name: [statistics.median(r) for r in rounds] for name, rounds in seconds.items()}
    ratios = {f"vs_{name}": _ratio(medians[name], medians["sandbox"]) for name in ways}
    del ratios["vs_sandbox"]
    for name, peer in (("wrong", "fresh_python"), ("wrong_with_state", "fresh_python_alone")):
        ratios[f"{name}_vs_{peer}"] = _ratio(medians[peer], medians[name])
    figures |= _layers(arguments.programs)
    if "bwrap_python" not in ways:
        figures["left_out"] = "vs_bwrap_python: bwrap is not installed, or may not run here"
    versions = {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "bwrap": _version("bwrap"),
        "tier": tier,
        "walls": " ".join(walls),
    }
    return {"ratios": ratios, "figures": figures, "versions": versions}


def _ways(sandbox: Sandbox) -> Iterator[tuple[str, Verify]]:
    yield "sandbox", lambda program: verify(sandbox, [(PROBLEM, program)])[0].passed
    python = [sys.executable, "-I", "-S", "-c", CALL]
    yield "fresh_python", lambda program: _fresh(python, program)
    if bwrap := shutil.which("bwrap"):
        wrapped = [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc",
                   "/proc", "--dev", "/dev", *python]  # fmt: skip
        if _runs(wrapped):
            yield "bwrap_python", lambda program: _fresh(wrapped, program)
    yield "manager", _managed


def _wrong(sandbox: Sandbox) -> Iterator[tuple[str, tuple[Verify, str]]]:
    """Yields ways to verify wrong programs, each with its program."""

    def whole(program: str) -> bool:
        return verify(sandbox, [(PROBLEM, program)])[0].passed

    def early(program: str) -> bool:
        return verify(sandbox, [(PROBLEM, program)], stop_early=True)[0].passed

    yield "wrong", (whole, WRONG)
    yield "wrong_with_state", (whole, WRONG_WITH_STATE)
    yield "wrong_stopped_early", (early, WRONG)
    python = [sys.executable, "-I", "-S", "-c", CALL]

    def per_test(program: str) -> bool:
        """Runs each test in a process of its own."""
        return all([_fresh(python, program, [test]) for test in TESTS])

    yield "fresh_python_alone", (per_test, WRONG_WITH_STATE)


def _runs_of(name: str, programs: int) -> int:
    return max(3, programs // 10) if name in SLOW else programs


def _ratio(peer: list[float], ours: list[float]) -> float:
    return round(statistics.median(p / o for p, o in zip(peer, ours, strict=True)), 2)


def _fresh(command: list[str], program: str, tests: Sequence[CallTest] = TESTS) -> bool:
    request = json.dumps([program, [test.arguments for test in tests]])
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    return json.loads(done.stdout) == [test.expected for test in tests]


def _runs(command: list[str]) -> bool:
    request = json.dumps([SOURCE, []])
    return subprocess.run(command, input=request, capture_output=True, text=True).returncode == 0


def _managed(program: str) -> bool:
    """Forks this process, model included, and passes the result through a Manager."""
    forked = multiprocessing.get_context("fork")
    with forked.Manager() as manager:
        results = manager.list()
        process = forked.Process(target=_fill, args=(program, results))
        process.start()
        process.join()
        return list(results) == [True] * len(TESTS)


def _fill(program: str, results: object) -> None:
    names: dict[str, object] = {}
    exec(program, names)
    for test in TESTS:
        results.append(names["solve"](*test.arguments) == test.expected)


def _timed(way: Verify, source: str = SOURCE, right: bool = True) -> float:
    program = source.format(next(_numbers))
    started = time.perf_counter()
    passed = way(program)
    seconds = time.perf_counter() - started
    if passed != right:
        raise RuntimeError(f"passed = {passed} for a program that should give {right}: {program}")
    return seconds


def _figures(seconds: dict[str, list[list[float]]]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for name, rounds in seconds.items():
        all_ = [second for one in rounds for second in one]
        figures[f"{name}_ms"] = round(1000 * statistics.median(all_), 3)
        figures[f"{name}_p99_ms"] = round(1000 * float(np.percentile(all_, 99)), 3)
        figures[f"{name}_programs_per_second"] = round(len(all_) / sum(all_), 1)
    figures["tests_per_second"] = round(len(TESTS) * figures["sandbox_programs_per_second"])
    return figures


def _layers(programs: int) -> dict[str, object]:
    """Returns the milliseconds that each layer adds to those before it; `fork` has no isolation."""
    command = [sys.executable, "-I", "-S", "-B", str(LAYERS), str(ZYGOTE.parent), str(programs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures, before = {}, 0.0
    for layer, milliseconds in json.loads(done.stdout).items():
        figures[f"layer_{layer}_ms"] = round(milliseconds - before, 3)
        before = milliseconds
    return figures


def _version(command: str) -> str:
    if not shutil.which(command):
        return "not installed"
    return subprocess.run([command, "--version"], capture_output=True, text=True).stdout.strip()
