"""Scientific claims, tested on the starters: arms that differ in one thing, with equal seeds.

Every claim compares arms with a control: the same number of nodes, the same problems in the same
order for the same seed. A cell is one arm with one seed: a training run of the engine and its
evaluation on unseen problems, in deterministic mode, so that a cell is remade bit for bit on the
same kind of machine. Cells run one after another under `--work`; what is finished is not run again,
and what was interrupted goes on, as often as the command is repeated. Each result is a JSON file,
CLAIM/ARM-SEED.json, under `--results`; `python -m docs.generate` writes the pages from them.

Exit status: 0, or 1 if a cell failed; the other cells are measured.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import WrongArguments
from benchmarks.conditions import ROOT, machine

SUMMARY = "claims of the method, tested with seeds and intervals; hours"
GOALS: dict[str, Any] = {}
RESULTS = ROOT / "docs" / "science" / "results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("claims", nargs="*", metavar="CLAIM", help="all of them, if none is named")
    parser.add_argument("--seeds", type=_count, default=10, help="seeds of each arm (10)")
    parser.add_argument(
        "--first-seed", type=_count, default=1, metavar="SEED",
        help="leave smaller seeds to another runner with the same directories (1)",
    )  # fmt: skip
    parser.add_argument("--arms", nargs="+", metavar="ARM", help="only these arms")
    parser.add_argument("--steps", type=_count, help="training steps of each cell (30)")
    parser.add_argument("--trees", type=_count, help="trees per step (12)")
    parser.add_argument("--problems", type=_count, help="problems of the evaluation (100)")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="docs/science/results"
    )
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "claims", metavar="DIR",
        help="directory of the runs (build/claims)",
    )  # fmt: skip
    parser.add_argument("--minutes", type=_minutes, default=60.0, help="limit of each stage (60)")
    parser.add_argument("--list", action="store_true", help="list the claims and their arms")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < 2**31):
        raise argparse.ArgumentTypeError(f"{text}: give a whole number of at least 1")
    return int(text)


def _minutes(text: str) -> float:
    minutes = float(text)  # argparse reports what is not a number
    if not 0 < minutes < 1e6:
        raise argparse.ArgumentTypeError(f"{text}: give minutes, more than 0")
    return minutes


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Returns the numbers of cells as figures, and failed ones with their first cause.

    Raises:
        WrongArguments: a claim or an arm does not exist.
    """
    from benchmarks.claims.cell import cells_of
    from benchmarks.claims.claim import Claim
    from benchmarks.claims.ray_node import shared_ray
    from benchmarks.claims.runner import run_cells
    from benchmarks.claims.stages import Workplace

    claims = _chosen(arguments.claims)
    if arguments.list:
        for claim in claims:
            print(_listed(claim))
        return {"ratios": {}, "figures": {"claims": len(claims)}, "versions": {}}

    def planned(claim: Claim) -> Any:
        given = {name: getattr(arguments, name) for name in ("steps", "trees", "problems")}
        return replace(claim.plan, **{name: v for name, v in given.items() if v is not None})

    first, last = arguments.first_seed, arguments.seeds
    if first > last:
        raise WrongArguments(f"--first-seed {first}: the last seed is {last} (--seeds)")
    cells = [one for claim in claims for one in cells_of(claim, last, planned(claim), first)]
    if arguments.arms:
        cells = [cell for cell in cells if cell.arm.name in arguments.arms]
    if not cells:
        raise WrongArguments(f"--arms {' '.join(arguments.arms)}: no such arm; --list names them")
    cells.sort(key=lambda cell: cell.seed)  # stable: every claim has as many seeds when it stops
    folder = arguments.work.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    place = Workplace(folder, arguments.minutes)
    with _stopping_on_sigterm():
        done = run_cells(cells, arguments.results, place, _report, shared_ray)
    figures: dict[str, Any] = {
        name: len(getattr(done, name)) for name in ("present", "measured", "copied")
    }
    if done.failed:
        figures["failed"] = done.failed
    return {
        "ratios": {},
        "figures": figures,
        "versions": {"machine": machine()},
    }


def _chosen(names: list[str]) -> list[Any]:
    from benchmarks.claims.catalogue import BY_NAME, CLAIMS

    if unknown := [name for name in names if name not in BY_NAME]:
        raise WrongArguments(f"{unknown[0]}: no such claim; choose from {', '.join(BY_NAME)}")
    return [BY_NAME[name] for name in names] or list(CLAIMS)


def _listed(claim: Any) -> str:
    arms = (f"    {arm.name:16} {arm.about}" for arm in claim.arms)
    return "\n".join([f"{claim.name}: {claim.statement}", *arms])


@contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    """Ends the block as Ctrl-C does on SIGTERM, so that the engine at work is stopped, too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
