"""Tests of the page of a run that another program logs: what it logged, and the groups of TRL.

With GROVE_SHOTS=FOLDER each saves its picture there; docs/trl.png is `trl.png` of the last one.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import grove
from tests.e2e.wellness import accessibility_errors, too_wide
from tests.helpers.builders import a_token
from tests.helpers.extras import needed
from tests.helpers.waiting import patience
from tests.packaging.builds import ROOT
from tests.webapp.client.conftest import tracked
from webapp.accounts.models import Scope
from webapp.client.tracking.trees import Node, Tree, record_step
from webapp.experiments.models import Run

pytestmark = [
    pytest.mark.browser, pytest.mark.large, pytest.mark.django_db(transaction=True),
]  # fmt: skip

PROGRAM = ROOT / "docs/examples/trl_grpo.py"


@pytest.fixture
def program(run, server, tmp_path, monkeypatch):
    """The login of a program, whose run is in the project of the sample run."""
    token = a_token(run.user, run.project, Scope.RUNS_WRITE, Scope.TELEMETRY_WRITE)
    monkeypatch.setenv("GROVE_ADDRESS", server.url)
    monkeypatch.setenv("GROVE_TOKEN", token)
    monkeypatch.setenv("GROVE_DIR", str(tmp_path))
    yield
    grove.finish()


def shot(page, name):
    """Saves a picture if a folder for pictures is given."""
    if folder := os.environ.get("GROVE_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def shown(page, key):
    """Waits until the page shows all that is stored."""
    head = Run.objects.get(tracking__key=key).head_seq
    page.locator(f'[data-part="stream"][data-seq="{head}"][data-shown="{head}"]').wait_for()


def log_everything(run):
    for step in range(30):
        grove.log({"train/loss": 3 / (step + 1), "train/reward": step / 40, "lr~x": 1e-4})
    grove.log(
        {"sample": "The first\nanswer.", "weights": grove.Histogram([1, 2, 2, 3, 9], num_bins=8)}
    )
    grove.log({"sample": "The second answer.", "eval/loss": float("nan")})
    rows = [[f"Prompt {index}", "<b>bold</b>" * 4, index / 7] for index in range(70)]
    grove.log({"tree": grove.Image([[0, 128], [255, 64]], caption="four pixels")})
    grove.log({"completions": grove.Table(columns=["prompt", "completion", "reward"], data=rows)})
    grove.summary["best"] = 0.75
    run.alert("Learning rate", "it is high", level="WARN")


def test_the_page_shows_all_that_a_program_logged_by_its_names(program, window):
    settings = {"lr": 1e-4, "model": {"name": "tiny", "layers": 2}, "note": "<i>x</i>"}
    with grove.init(id="logged", name="A tiny model", config=settings, tags=["tiny"]) as run:
        log_everything(run)
        run.plan(100)
    page = window(run.url)
    shown(page, "logged")
    for name in ("train/loss", "train/reward", "lr~x"):
        page.get_by_role("region", name=name, exact=True).wait_for()
    page.locator('[data-metric="logged.train~1loss"] canvas').first.wait_for()
    page.get_by_text("eval/loss was NaN at step 31").wait_for()
    program_card = page.get_by_role("region", name="Settings")
    assert "model.layers" in program_card.inner_text() and "<i>x</i>" in program_card.inner_text()
    assert "best" in program_card.inner_text() and "0.75" in program_card.inner_text()
    assert page.locator('[data-part="bench"]').is_hidden()
    assert page.locator('[data-part="team"]').is_hidden()
    assert page.get_by_text("Solved trees").count() == 0
    assert "33 of 100" in page.locator('[data-part="facts"]').inner_text()
    table = page.get_by_role("region", name="completions")
    assert table.locator("tbody tr").count() == 50 and "<b>bold</b>" in table.inner_text()
    table.get_by_role("button", name="Show all 70 rows").click()
    assert table.locator("tbody tr").count() == 70
    assert page.get_by_role("img", name="Histogram of weights: 5 values").count() == 1
    picture = page.get_by_role("img", name="four pixels")
    assert picture.evaluate("one => one.naturalWidth") == 2
    sample = page.get_by_role("region", name="sample")
    assert "The second answer." in sample.inner_text()
    sample.get_by_role("button", name="Earlier").click()
    sample.get_by_text("The first").wait_for()
    sample.get_by_role("button", name="Earlier").click()
    sample.get_by_text("This is the first one.").wait_for()
    sample.get_by_role("button", name="Newest").click()
    assert "The second answer." in sample.inner_text()
    shot(page, "logged")
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="A tiny model")
    assert "logged by another program" in row.inner_text() and "tiny" in row.inner_text()
    shot(page, "list")


def test_a_run_that_logged_nothing_and_one_that_failed_say_so(program, window):
    grove.init(id="fails")
    run = grove.run
    page = window(run.url)
    shown(page, "fails")
    page.get_by_text("The program gave no settings.").wait_for()
    assert page.locator('[data-part="logged"]').is_hidden()
    assert page.locator('[data-part="bench"]').is_hidden()
    shot(page, "empty")
    grove.log({"loss": 1.0})
    page.locator('[data-metric="logged.loss"]').wait_for()
    run.fail(RuntimeError("no more memory"))
    page.get_by_text("RuntimeError: no more memory").first.wait_for()
    assert page.get_by_role("button", name="Resume").count() == 0
    shot(page, "failed")


def test_a_chart_has_room_for_its_numbers_and_any_name(program, window):
    with grove.init(id="large"):
        for step in range(30):
            grove.log({"small": step / 10, "millions": step * 1e6, "constructor": step})
    page = window(f"/charts/?run={tracked('large').pk}")
    lefts = {}
    for name in ("small", "millions", "constructor"):
        plot = page.locator(f'[data-metric="logged.{name}"] .u-over')
        lefts[name] = plot.evaluate("plot => plot.offsetLeft")
    assert lefts["small"] == lefts["constructor"] < lefts["millions"] - 10
    headings = page.locator("main h2").all_inner_texts()
    assert "Logged" in headings and "Training health" not in headings


def test_a_name_in_which_no_line_breaks_and_a_huge_reward_fit_a_phone(program, window):
    names = ["a" * 90, "b" * 90]
    with grove.init(id="wide") as run:
        nodes = [Node("x", 1e200, 0.5, agent=name) for name in names]
        record_step(run.emit, run.new_tree, 1, [Tree("2 + 2?", nodes)])
    page = window(f"/runs/{tracked('wide').pk}/")
    shown(page, "wide")
    assert too_wide(page) == []
    page.goto(f"/charts/?run={tracked('wide').pk}&q=reward")
    page.locator("[data-metric] .u-over").first.wait_for()
    assert too_wide(page) == []


def test_groups_are_trees_in_both_schemes_and_widths(program, window):
    answers = [
        Node("The answer is 4.", 1.0, 1.2, 6),
        Node("It is five, I think,", 0.25, -0.3, 8, is_cut=True),
        Node("", None, 0.0),
    ]
    with grove.init(id="groups", config={"lr": 1e-4}) as run:
        log_everything(run)
        run.emit("run.planned", {"steps": 2, "agents": ["policy"]})
        for step in (1, 2):
            groups = [Tree("What is 2 + 2?", answers), Tree("Add 1 and 4.", answers[1:])]
            record_step(run.emit, run.new_tree, step, groups, 2.0, 2.0 * step)
    page = window(run.url, 1600, 1000)
    shown(page, "groups")
    page.get_by_role("treeitem").filter(has_text="What is 2 + 2?").first.wait_for(state="attached")
    assert page.locator('[data-part="bench"]').is_visible()
    page.locator('[data-part="team"]').wait_for()
    for chart in ("reward", "solved", "logged.train~1loss"):
        page.locator(f'[data-metric="{chart}"]').wait_for()
    assert accessibility_errors(page, "groups") == []
    shot(page, "groups")
    opened = Run.objects.get(tracking__key="groups").events.filter(kind="tree.open")
    tree = opened.order_by("seq")[2].tree  # the first of the second step
    page.goto(f"{run.url}#tree={tree}&node=1")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_text("The answer is 4.").wait_for()
    text = panel.inner_text()
    assert "by the program that trains" in text and "+1.2" in text and "Verdict" not in text
    shot(page, "node")
    page.set_viewport_size({"width": 400, "height": 800})
    assert accessibility_errors(page, "groups at 400 pixels") == []
    shot(page, "groups-narrow")


def test_a_training_of_trl_is_seen_with_its_groups(program, window, tmp_path):
    needed("trl", "pip install 'grove-rl[bench]'")
    environment = {**os.environ, "WANDB_WATCH": "gradients"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "webapp/client/packages")])
    command = [sys.executable, PROGRAM, "--id", "trl"]
    subprocess.run(command, env=environment, cwd=tmp_path, check=True, timeout=300 * patience())
    stored = Run.objects.get(tracking__key="trl")
    address = f"{os.environ['GROVE_ADDRESS']}/runs/{stored.pk}/"
    assert stored.state == "finished" and stored.tracking.config["logging_steps"] == 1
    logged = [one.payload for one in stored.events.filter(kind="metric.logged").order_by("seq")]
    losses = [one["step"] for one in logged if "train/loss" in one.get("numbers", {})]
    assert losses == [1, 2, 3, 4]  # once, though transformers and follow could both log them
    tables = [(one["step"], one["tables"]["completions"]) for one in logged if "tables" in one]
    # TRL logs its table with the totals of the training, once more.
    assert [step for step, _ in tables] == [1, 2, 3, 4, 4]
    columns = {"step", "prompt", "completion", "different_letters", "advantage"}
    assert columns <= set(tables[0][1]["columns"]) and len(tables[0][1]["rows"]) == 12
    page = window(address, 1440, 1200)
    shown(page, "trl")
    opened = stored.events.filter(kind="tree.open").order_by("seq")
    assert [one.payload["step"] for one in opened] == [step for step in range(1, 5) for _ in "ab"]
    closed = stored.events.filter(kind="node.close")
    newest = max(  # of the last step, the group whose rewards differ most
        opened.filter(payload__step=4),
        key=lambda one: len({node.payload["score"] for node in closed.filter(tree=one.tree)}),
    )
    page.locator('[data-part="team"]').wait_for()
    for chart in ("reward", "solved", "logged.train~1loss"):
        page.locator(f'[data-metric="{chart}"]').first.wait_for()
    page.goto(f"{address}#tree={newest.tree}&node=1")
    panel = page.locator('[data-part="panel"]')
    panel.get_by_text("by the program that trains").wait_for()
    first = page.get_by_role("treeitem").filter(has_text="def solve(x):").first
    first.wait_for(state="attached")
    if folder := os.environ.get("GROVE_SHOTS"):
        page.locator('[data-part="bench"]').screenshot(path=f"{folder}/trl.png")
