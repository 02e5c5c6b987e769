"""Comparison of two revisions: whether REF computes what this checkout does.

    python -m tests.helpers.compare_revisions REF

Compares every recipe that a small machine can train, three searches, and a run that REF starts and
this checkout resumes, all in deterministic mode: events without times, and weights, bit for bit
(`python -m engine same`). Exit status: 0 if all are the same, 1 if one is not, 2 if REF is unknown.

Only the command line of each revision is used, so modules may have moved between the two.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.small_recipes import small_overrides
from tests.helpers.waiting import eventually

HERE = Path(__file__).resolve().parents[2]
DEADLINE = 600
STOPPED = 3
"""Exit status of an engine that stopped on request."""
PROBLEM = {
    "id": "running-total",
    "statement": "Return the list of running totals of a list of whole numbers.",
    "entry_point": "solve",
    "public_tests": [{"arguments": [[1, 2, 3]], "expected": [1, 3, 6]}],
    "private_tests": [
        {"arguments": [[]], "expected": []},
        {"arguments": [[4, -4]], "expected": [4, 0]},
    ],
}
_SHORT = ("agents.0.sampling.max_new_tokens=48", "compute.deterministic=true", "sandbox.workers=1")
_SHORT_TEAM = (*_SHORT, "agents.1.sampling.max_new_tokens=48")
_TEAM = ("oak=starter:oak", "fern=starter:fern")
SEARCHES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sequential": (_TEAM[:1], _SHORT),
    "team-gaussian": (
        _TEAM,
        (*_SHORT_TEAM, "search.nodes_in_flight=4", "search.posterior=gaussian",
         "search.selection_order=node_first", "search.agent_choice=ucb"),
    ),
    "depth-guided": (
        _TEAM,
        (*_SHORT_TEAM, "search.nodes_in_flight=2", "search.rho=0.97", "search.max_depth=3",
         "search.error_feedback=false"),
    ),
}  # fmt: skip
"""Agents and settings of each search."""


class EngineError(Exception):
    """An engine command failed; the message has the command, the revision and the last lines."""


@dataclass(frozen=True)
class Revision:
    """A checkout whose engine runs in separate processes."""

    name: str
    root: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts `python -m engine ARGUMENTS` of this checkout in a process group of its own."""
        environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
        environment |= {"PYTHONPATH": str(self.root), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "engine", *arguments], cwd=self.root, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def run(self, *arguments: str) -> str:
        """Runs a command to its end; returns its stdout.

        Raises:
            EngineError: its exit status is not 0, or `DEADLINE` seconds have passed.
        """
        return self.end(self.start(*arguments), 0)

    def end(self, process: subprocess.Popen[str], expected: int) -> str:
        """Waits for a process of `start` to end with exit status `expected`; raises like `run`."""
        command = " ".join(map(str, process.args[3:])) if isinstance(process.args, list) else ""
        try:
            out, error = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise EngineError(f"{self.name}: {command}: not done after {DEADLINE} s") from None
        if process.returncode != expected:
            raise EngineError(
                f"{self.name}: {command}: exit status {process.returncode}\n{error[-3000:]}"
            )
        return out


@dataclass(frozen=True)
class Case:
    """A computation that each revision does in a run directory of its own."""

    name: str
    compute: Callable[[Revision, Path], None]


def recipe_case(name: str) -> Case:
    """Two small steps of a recipe, as this revision resolves it."""

    def compute(revision: Revision, run_dir: Path) -> None:
        settings = settings_of(revision, run_dir, name)
        overrides = small_overrides(settings) | {"compute.deterministic": True}
        _train(revision, run_dir, name, overrides)

    return Case(f"recipe {name}", compute)


def search_case(name: str) -> Case:
    """A search of 8 nodes for `PROBLEM`."""
    agents, settings = SEARCHES[name]

    def compute(revision: Revision, run_dir: Path) -> None:
        run_dir.mkdir()
        problem = run_dir / "given.jsonl"
        problem.write_text(json.dumps(PROBLEM) + "\n")
        revision.run(
            "search", "--problem", str(problem), "--run-dir", str(run_dir), "--no-early-stop",
            "--nodes", "8", "--in-flight", "1", "--seed", "5", "--agents", *agents, "--set",
            *settings,
        )  # fmt: skip

    return Case(f"search {name}", compute)


def resume_case(here: Revision) -> Case:
    """Three steps of `demo` here, against a run that REF starts and this checkout resumes."""

    def compute(revision: Revision, run_dir: Path) -> None:
        overrides = small_overrides(settings_of(revision, run_dir, "demo")) | {
            "compute.deterministic": True, "training.steps": 3, "training.checkpoint_every": 1,
            "problems.validation": 4, "problems.test": 4,
        }  # fmt: skip
        if revision is here:
            _train(revision, run_dir, "demo", overrides)
            return
        _prepare(revision, run_dir, "demo", overrides)
        process = revision.start("train", str(run_dir))
        eventually(
            lambda: _lines(run_dir, '"step.end"') or process.poll() is not None,
            f"the first step of {run_dir}", DEADLINE,
        )  # fmt: skip
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        revision.end(process, STOPPED)
        here.run("train", str(run_dir))
        if not _lines(run_dir, '"run.resumed"'):
            raise EngineError(f"{here.name} began the run of {revision.name} anew")

    return Case("resume demo", compute)


def settings_of(revision: Revision, run_dir: Path, recipe: str) -> dict[str, Any]:
    """All settings of a recipe, resolved by this revision."""
    scratch = run_dir.with_name(f"{run_dir.name}-settings")
    return json.loads(revision.run("prepare", str(scratch), recipe, "--json"))


def left_out(settings: dict[str, Any]) -> str:
    """Why a small machine cannot train a recipe with these settings; empty if it can."""
    for agent in settings["agents"]:
        if not agent["model"].startswith("starter:"):
            return f"agent {agent['name']} needs the weights of {agent['model']}"
        if agent["generator"]["name"] != "torch":
            return f"agent {agent['name']} needs {agent['generator']['name']}"
    if settings["compute"]["device"] == "cuda":
        return "needs a GPU"
    return ""


def difference(case: Case, here: Revision, other: Revision, folder: Path) -> str:
    """Returns the first difference of the revisions in this case; empty if there is none.

    Raises:
        EngineError: one of them failed.
    """
    folder.mkdir()
    runs = {revision: folder / side for revision, side in ((here, "here"), (other, "other"))}
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(case.compute, revision, run) for revision, run in runs.items()]
        for future in done:
            future.result()
    same = here.start("same", str(runs[other]), str(runs[here]), "--json")
    out, error = same.communicate(timeout=DEADLINE)
    if same.returncode not in (0, 1):
        raise EngineError(f"same: exit status {same.returncode}\n{error[-3000:]}")
    return json.loads(out)["difference"] or ""


@contextmanager
def checkout(ref: str, folder: Path) -> Iterator[Revision]:
    """A temporary git worktree of REF.

    Raises:
        subprocess.CalledProcessError: the revision does not exist.
    """
    root = folder / "checkout"
    git = ["git", "-C", str(HERE), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(root), ref], check=True)
    try:
        yield Revision(ref, root)
    finally:
        subprocess.run([*git, "remove", "--force", str(root)], check=True)


def all_cases(here: Revision, other: Revision, folder: Path) -> Iterator[Case]:
    """Returns every case; prints the omitted recipes, with the reason."""
    for path in sorted((HERE / "engine" / "recipes").glob("*.toml")):
        if not (other.root / path.relative_to(HERE)).is_file():
            print(f"left out: recipe {path.stem}: {other.name} has none", flush=True)
        elif reason := left_out(settings_of(here, folder / path.stem, path.stem)):
            print(f"left out: recipe {path.stem}: {reason}", flush=True)
        else:
            yield recipe_case(path.stem)
    yield from map(search_case, SEARCHES)
    yield resume_case(here)


def main(argv: list[str] | None = None) -> int:
    """Compares the revisions; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.helpers.compare_revisions", description=__doc__
    )
    parser.add_argument("ref", metavar="REF", help="a commit, a tag or a branch")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name contains it")
    arguments = parser.parse_args(argv)
    here, parted = Revision("this checkout", HERE), 0
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        folder = Path(name)
        try:
            with checkout(arguments.ref, folder) as other:
                cases = [c for c in all_cases(here, other, folder) if arguments.only in c.name]
                if not cases:
                    print(f"--only {arguments.only}: no case has this in its name", file=sys.stderr)
                    return 2
                for number, case in enumerate(cases):
                    parted += _report(case, here, other, folder / f"case-{number}")
        except subprocess.CalledProcessError:
            return 2
    print(f"{len(cases) - parted} of {len(cases)} cases are the same, bit for bit")
    return 1 if parted else 0


def _report(case: Case, here: Revision, other: Revision, folder: Path) -> bool:
    """Prints the outcome of a case; returns whether the revisions differ."""
    start = time.monotonic()
    try:
        result = difference(case, here, other, folder)
    except EngineError as error:
        result = str(error)
    seconds = f"{time.monotonic() - start:.0f} s"
    print(f"DIFFERENT {case.name} ({seconds}): {result}" if result else
          f"same {case.name} ({seconds})", flush=True)  # fmt: skip
    return bool(result)


def _train(revision: Revision, run_dir: Path, recipe: str, overrides: dict[str, Any]) -> None:
    _prepare(revision, run_dir, recipe, overrides)
    revision.run("train", str(run_dir))


def _prepare(revision: Revision, run_dir: Path, recipe: str, overrides: dict[str, Any]) -> None:
    texts = [f"{path}={json.dumps(value)}" for path, value in overrides.items()]
    revision.run("prepare", str(run_dir), recipe, *texts)


def _lines(run_dir: Path, kind: str) -> int:
    file = run_dir / "events.jsonl"
    return file.read_text("utf-8", "replace").count(f'"kind":{kind}') if file.exists() else 0


if __name__ == "__main__":
    sys.exit(main())
