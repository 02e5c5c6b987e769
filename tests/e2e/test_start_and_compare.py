"""Tests in a real browser of starting from a recipe, forking, comparing, and a failure's cause."""

from __future__ import annotations

import re
from collections import deque

import pytest
from playwright.sync_api import expect

from engine.events.vocabulary import Event
from tests.e2e.conftest import SAMPLE
from tests.helpers.accessibility import broken_rules
from tests.helpers.chromium import drag
from tests.helpers.site import SampleRun
from webapp.experiments.models import Run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(window, run):
    return window(f"/runs/{run.run.pk}/", height=1000)


def breaks_no_rule(page):
    # Wherever else the page is scrolled to, the sticky header covers a part of some field.
    page.evaluate("scrollTo(0, 0)")
    assert broken_rules(page) == []


def outcomes(step: int, seq: int, solved: int) -> Event:
    contents = [f"{index:016x}" for index in range(100)]
    values = [float(index < solved) for index in range(100)]
    payload = {"step": step, "split": "test", "contents": contents,
            "outcomes": {"pass@1/oak": values}}  # fmt: skip
    return Event(seq, 1_763_700_000.0, "eval.outcomes", None, None, payload)


def test_fields_and_text_say_the_same_and_start_the_run(page, run):
    page.goto("/runs/new/?recipe=demo")
    expect(page.get_by_text("Default settings; 1 run to start.")).to_be_visible()
    page.get_by_label("Search settings").fill("nodes per tree")
    field = page.locator('[data-path="search.nodes_per_tree"]')
    field.fill("0")
    expect(page.locator('[data-setting="search.nodes_per_tree"] .error')).to_contain_text("1")
    field.fill("4")
    text = page.get_by_label("Overrides (TOML)")
    expect(text).to_have_value("search.nodes_per_tree = 4")
    text.fill("search.nodes_per_tree = 5\ntraining.steps = 3")
    expect(field).to_have_value("5")
    expect(page.get_by_text("2 settings changed; 1 run to start.")).to_be_visible()
    page.get_by_label("Seeds").fill("1-2")
    page.get_by_text("2 settings changed; 2 runs to start.").wait_for()
    page.get_by_text("Preflight checks").wait_for()
    breaks_no_rule(page)
    page.get_by_role("button", name="Start 2 runs").click()
    page.get_by_text("2 runs of demo are queued").wait_for()
    made = Run.objects.exclude(pk=run.run.pk)
    assert {one.steps for one in made} == {3} and [one.seed for one in made.order_by("seed")] == [
        1,
        2,
    ]
    assert {one.config["search"]["nodes_per_tree"] for one in made} == {5}


@pytest.mark.large
def test_a_list_of_gauges_is_checked_box_by_box(page, run):
    page.goto("/runs/new/?recipe=demo")
    page.get_by_text("Default settings; 1 run to start.").wait_for()
    page.get_by_label("Search settings").fill("gauges")
    boxes = page.get_by_role("group", name="Gauges")
    text = page.get_by_label("Overrides (TOML)")
    boxes.get_by_label("support").check()
    boxes.get_by_label("diversity").check()
    expect(text).to_have_value('evaluation.gauges = ["support", "diversity"]')
    page.get_by_text("1 setting changed; 1 run to start.").wait_for()
    text.fill('evaluation.gauges = ["success"]')
    expect(boxes.get_by_label("success")).to_be_checked()
    expect(boxes.get_by_label("support")).not_to_be_checked()
    breaks_no_rule(page)
    boxes.get_by_label("success").uncheck()
    expect(text).to_have_value("")
    page.get_by_text("Default settings; 1 run to start.").wait_for()


@pytest.mark.large
def test_agents_are_a_list_that_the_keyboard_changes(page, run):
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto("/runs/new/?recipe=demo")
    page.get_by_text("Default settings; 1 run to start.").wait_for()
    agents = page.locator("[data-agent]")
    page.get_by_label("New agent").focus()
    page.keyboard.type("oak")
    page.keyboard.press("Enter")
    page.get_by_text("An agent oak already exists").wait_for()
    page.get_by_label("New agent").fill("elm")
    page.keyboard.press("Enter")
    expect(page.locator('[data-path="agents.elm.model"]')).to_be_focused()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("starter:nothing")
    error = page.locator('[data-setting="agents.elm.model"] .error')
    expect(error).to_contain_text("starter")
    page.get_by_text("agents.elm.model").first.wait_for()
    page.locator('[data-path="agents.elm.model"]').fill("starter:oak")
    page.locator('[data-agent="oak"] summary').focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Restore oak")).to_be_visible()
    expect(page.get_by_label("Overrides (TOML)")).to_have_value(re.compile("agents.oak = unset"))
    breaks_no_rule(page)
    for name in ("", "", "", "", "", ""):
        page.get_by_label("New agent").fill(name)
        page.keyboard.press("Enter")
    expect(agents).to_have_count(8)
    page.get_by_text("1 run to start.").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for name in page.locator("[data-agent]").evaluate_all(
        "all => all.map((one) => one.dataset.agent)"
    )[2:]:
        page.locator(f'[data-agent="{name}"] [data-remove]').click()
    expect(agents).to_have_count(2)
    page.get_by_text("1 run to start.").wait_for()
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/"))
    made = Run.objects.exclude(pk=run.run.pk).get()
    assert [one["name"] for one in made.config["agents"]] == ["fern", "elm"]


@pytest.mark.large
def test_a_run_is_forked_from_its_page(page, run, server):
    path = server.var / "runs" / str(run.run.pk) / "checkpoints" / "step-000002"
    path.mkdir(parents=True)
    (path / "manifest.json").write_text("{}")
    page.reload()
    page.get_by_text("More", exact=True).click()
    page.get_by_role("link", name="Fork from step 2").click()
    page.get_by_role("heading", name="Fork of demo #1, from step 2").wait_for()
    page.get_by_label("Overrides (TOML)").fill("loss.kl_coefficient = 0.5")
    page.get_by_text("1 setting changed; 1 run to start.").wait_for()
    page.get_by_role("button", name="Start the run").click()
    page.get_by_text("Forked from step 2 of").wait_for()
    fork = Run.objects.get(parent=run.run)
    assert fork.config["loss"]["kl_coefficient"] == 0.5 and fork.parent_step == 2


@pytest.mark.large
def test_two_runs_are_compared_with_words_and_curves(page, run, log):
    head = run.feed(log)
    run.feed([outcomes(3, head + 1, 30)])
    other = SampleRun(SAMPLE, "other")
    other.feed([outcomes(3, 1, 60)])
    page.goto(f"/compare/?run={run.run.pk}&run={other.run.pk}")
    page.get_by_text("B is 30.0 points above A, 95 % interval").wait_for()
    page.get_by_text("No differences.").wait_for()
    reward = page.locator('[data-metric="reward"]')
    reward.scroll_into_view_if_needed()
    reward.locator("canvas").first.wait_for()
    lines = 1 + len(SAMPLE.agents)
    assert reward.get_attribute("data-points") == str(lines * SAMPLE.steps)
    page.get_by_label("Seeds").select_option("ci")
    page.wait_for_url(re.compile("band=ci"))
    drag(page, reward.locator(".u-over"), (0.5, 0.5), (0.8, 0.5))
    page.locator(f'[data-metric="reward"][data-drawn-ms][data-points="{lines}"]').wait_for()
    breaks_no_rule(page)
    page.get_by_label("Evaluated on").select_option("validation")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("No per-problem results of A and B").wait_for()
    assert f"run={run.run.pk}&run={other.run.pk}" in page.url and "split=validation" in page.url


@pytest.mark.large
def test_a_failed_run_shows_where_it_failed_and_resumes(page, run, log):
    events = deque(log)
    some = [events.popleft() for _ in range(len(events) // 3)]
    head = run.feed(some)
    payload = {"message": "TeamError: agents to learn: no memory", "traceback": "Traceback",
            "phase": "learn", "agent": "oak", "rank": 1}  # fmt: skip
    run.feed([Event(head + 1, some[-1].time, "error", None, None, payload)])
    run.end("failed", payload["message"])
    panel = page.get_by_role("alert")
    expect(panel).to_contain_text("no memory")
    for words in ("learn", "oak", "Last completed step"):
        expect(panel.locator("dl")).to_contain_text(words)
    breaks_no_rule(page)
    panel.get_by_role("button", name="Resume").click()
    page.locator('[data-part="pill"][data-state="queued"]').wait_for()
    page.get_by_text("resumed it").wait_for()
