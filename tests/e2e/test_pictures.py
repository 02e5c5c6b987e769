"""Tests that the documented command takes the pictures in docs, and that they are up to date."""

from __future__ import annotations

import hashlib
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.builders import A_PROBLEM, a_model_directory, an_event
from webapp.experiments.scheduling.leases import take_lease
from webapp.experiments.services import mark_finished, mark_starting
from webapp.registry.models import Model, ModelVersion
from webapp.registry.references import reference_to
from webapp.searches.launch.roles import ROLES, SMALLEST, in_role
from webapp.searches.models import Search
from webapp.searches.services import SearchSpec, create_search
from webapp.telemetry.ingest.ingest import ingest

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DOCS = Path(__file__).resolve().parents[2] / "docs"
SIZES = {"run.png": (2160, 2340), "charts.png": (2160, 1500), "search.png": (2160, 2100)}
"""Pixels of each picture: one and a half times the size of its window."""


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height, from the header of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:24])


def a_solved_search(run, folder: Path) -> Search:
    """A finished search by one pretrained model in two roles."""
    model = Model.objects.create(project=run.project, name="smollm2")
    known = {"path": str(a_model_directory(folder)), "parameters": SMALLEST, "sha256": "b" * 64}
    version = ModelVersion.objects.create(model=model, number=1, **known)
    team = [in_role(reference_to(version), role) for role in ROLES]
    search = create_search(run.project, run.user, SearchSpec(team, A_PROBLEM))
    fencing = take_lease(search.run_id, "worker", 60)
    mark_starting(search.run_id, fencing)
    node = {"tree": 3, "node": 1}
    answer = {
        "program": "def solve(x):\n    return sorted(x)\n", "agent": "smollm2-writer",
        "rule": "most public tests passed, then the latest node", "passed": 1, "tests": 1,
        "private_passed": True, "ended": "solved", "nodes": 1, "tokens": 9, "seconds": 0.5,
        "reward": None,
    }  # fmt: skip
    closed = {
        "program": answer["program"], "verdict": "passed", "score": 1.0, "fraction": 1.0,
        "tests": [], "tokens": 9, "stop": "end_of_text", "mean_logprob": -0.1,
        "policy_version": 0, "seconds": 0.5, "error": "",
    }  # fmt: skip
    opened = {"agent": "smollm2-writer", "parent": 0, "depth": 1, "draws": {}}
    tree = {"tree": 3, "step": 1, "problem": "p", "statement": "s", "difficulty": 0}
    events = [
        an_event(1, "run.state", state="running"),
        an_event(2, "run.planned", steps=1, agents=["smollm2-writer", "smollm2-checker"]),
        an_event(3, "tree.open", **tree),
        an_event(4, "node.open", **node, **opened),
        an_event(5, "node.close", **node, **closed),
        an_event(6, "tree.close", tree=3, nodes=1, solved=True, mean_score=1.0, filtered=False),
        an_event(7, "search.answer", **node, **answer),
        an_event(8, "run.state", state="finished"),
    ]
    ingest(search.run_id, fencing, events)
    mark_finished(search.run_id, fencing)
    return search


@pytest.mark.large
def test_the_documented_command_takes_the_pictures_and_those_in_docs_are_of_todays_pages(
    server, run, log, tmp_path
):
    run.feed(log)
    checkpoint = server.var / "runs" / str(run.run.pk) / "checkpoints" / "step-000002"
    checkpoint.mkdir(parents=True)
    (checkpoint / "manifest.json").write_text("{}")  # the demo run has one that can be forked
    link = server.url + run.sign_in_path()
    search = a_solved_search(run, tmp_path / "smollm2")
    command = [sys.executable, str(DOCS / "screenshot.py"), link, str(tmp_path)]
    command += ["--run", str(run.run.pk), "--search", str(search.run_id)]
    done = subprocess.run(command, capture_output=True, text=True)  # each wait has its own deadline
    assert done.returncode == 0, done.stderr
    today = json.loads((tmp_path / "pictures.json").read_text())
    kept = json.loads((DOCS / "pictures.json").read_text())
    assert today.keys() == kept.keys() == SIZES.keys()
    for name, size in SIZES.items():
        assert size_of(tmp_path / name) == size_of(DOCS / name) == size
        assert hashlib.sha256((DOCS / name).read_bytes()).hexdigest() == kept[name]["sha256"]
        assert today[name]["outline"] == kept[name]["outline"], f"take {name} again"
