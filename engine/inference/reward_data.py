"""Training data of a reward model (a run's nodes, labelled right or wrong), and its files.

Invariants: an example's label is the outcome on all tests, private ones included, which no prompt
holds; equal programs for one problem are one example; each problem is in one part of the split.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.events.log import FILE_NAME, read_all
from engine.events.timeline import surviving_events
from engine.events.vocabulary import Verdict
from engine.policy.models.load import ModelError

HEAD_FILE, ABOUT_FILE = "value_head.safetensors", "reward_model.json"
VERSION = 1
STOPPING = 0.1
_KINDS = {"run.resumed", "tree.open", "node.close"}


@dataclass(frozen=True, slots=True)
class Example:
    """One program written for a problem, with its label."""

    statement: str
    program: str
    right: bool
    """Whether it passes every test."""


@dataclass(frozen=True)
class Examples:
    """Split of the examples; no problem is in two parts."""

    training: list[Example]
    stopping: list[Example]
    """Decide on early stopping, so that the held-out ones stay unseen."""
    held_out: list[Example]


def examples_of_run(run_dir: Path) -> list[Example]:
    """Returns each distinct program of a run's trees once, without steps that a resume voided.

    Raises:
        ValueError: the directory has no log of a run, or the log holds no judged program.
    """
    if not (run_dir / FILE_NAME).is_file():
        raise ValueError(f"{run_dir / FILE_NAME} is missing; give the directory of a trained run")
    statements: dict[int | None, str] = {}
    by_program: dict[tuple[str, str], Example] = {}
    recorded = (event for event in read_all(run_dir) if event.kind in _KINDS)
    for event in surviving_events(recorded):
        if event.kind == "tree.open":
            statements[event.tree] = event.payload["statement"]
        elif event.kind == "node.close" and event.tree in statements:
            node, statement = event.payload, statements[event.tree]
            if node["score"] is None or not node["program"].strip():
                continue
            right = node["verdict"] == Verdict.PASSED
            by_program[statement, node["program"]] = Example(statement, node["program"], right)
    if not by_program:
        raise ValueError(f"{run_dir}: its log holds no judged program; train the run first")
    return list(by_program.values())


def split_by_problem(examples: Sequence[Example], held_out: float, seed: int) -> Examples:
    """Splits by a hash of seed and statement: about a share `held_out` of the problems is held
    out, and a tenth of the others is set apart for early stopping.

    Raises:
        ValueError: the training or held-out part has no right, or no wrong, program, or the part
            for early stopping is empty.
    """
    parts = Examples([], [], [])
    for example in examples:
        digest = hashlib.sha256(f"{seed}:{example.statement}".encode()).digest()
        fraction = int.from_bytes(digest[:8], "big") / 2**64
        if fraction < held_out:
            parts.held_out.append(example)
        elif fraction < held_out + STOPPING * (1 - held_out):
            parts.stopping.append(example)
        else:
            parts.training.append(example)
    for name, part in (("to learn from", parts.training), ("held out", parts.held_out)):
        right = sum(example.right for example in part)
        if not 0 < right < len(part):
            raise ValueError(
                f"of the {len(part)} programs {name} {right} are right: there must be right and "
                "wrong ones; train the run for longer, or change --held-out"
            )
    if not parts.stopping:
        raise ValueError("no problem is left to tell when to stop; train the run for longer")
    return parts


def check_reward_model(directory: Path) -> None:
    """Checks the files and the version of a reward model's directory. Raises ModelError."""
    for name in (ABOUT_FILE, HEAD_FILE):
        if not (directory / name).is_file():
            raise ModelError(
                f"{directory / name} is missing; make a reward model with "
                "`python -m engine reward-model RUN_DIR --out DIR`"
            )
    try:
        version = json.loads((directory / ABOUT_FILE).read_text("utf-8"))["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ModelError(f"{directory / ABOUT_FILE} is not what Grove writes") from None
    if version != VERSION:
        raise ModelError(f"{directory / ABOUT_FILE}: version {version}, this Grove reads {VERSION}")
