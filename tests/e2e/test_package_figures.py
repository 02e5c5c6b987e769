"""Tests that the figures of another package's methods are charts on the run page.

With GROVE_SHOTS=FOLDER its picture is saved there.
"""

from __future__ import annotations

import os

import pytest

from engine.config.schema import parse_config
from tests.e2e.conftest import SAMPLE, until_the_server_rests
from tests.helpers.chromium import a_context
from tests.helpers.plugin_packages import EXAMPLE, installed, search_path, trained
from tests.helpers.policies import tiny_config, tiny_policy
from tests.helpers.site import SampleRun
from tests.webapp.telemetry.stream_server import a_session

pytestmark = [
    pytest.mark.browser, pytest.mark.large, pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]  # fmt: skip

CHARTS = {
    "figures.unlikely": ("Tokens below the floor", ""),
    "logged.smoothed.baseline": ("Moving average of the rewards", "reward"),
    "logged.answer_length.tokens": ("Length of right and of wrong answers", "tokens"),
}
"""Title and unit of the figures of the package's loss, advantage and gauge; a share has none, for
its values are percentages."""


@pytest.fixture
def site(serves):
    """A server in whose environment the package is installed."""
    server = serves(PYTHONPATH=search_path(EXAMPLE))
    server.start()
    yield server
    server.kill()


def settings_of_the_package(model):
    data = tiny_config(
        model,
        training={"steps": 2, "trees_per_step": 4, "validate_every": 9, "checkpoint_every": 9},
        problems={"seed": 3, "train": 20, "validation": 0, "test": 0},
    ).model_dump(mode="json")
    data["credit"] |= {"advantage": "smoothed", "brief": {"weight": -0.1}, "shaping_gamma": 0.0}
    data["loss"] |= {"policy": "reinforce"}
    data["search"] |= {"strategy": "best_first"}
    data["training"] |= {"sampler": "unsolved"}
    data["evaluation"] |= {"gauges": ["answer_length"]}
    return data


def test_figures_of_a_package_are_charts_with_their_titles_and_units(
    browser, site, transactional_db, faults, tmp_path
):
    data = settings_of_the_package(tiny_policy(tmp_path / "model", 1))
    log = trained(tmp_path / "run", data, EXAMPLE)
    with installed(EXAMPLE):
        run = SampleRun(SAMPLE, config=parse_config(data))
    run.feed(log)
    context = a_context(browser, base_url=site.url, viewport={"width": 1280, "height": 900})
    session = a_session(run.user).session_key
    context.add_cookies([{"name": "sessionid", "value": session, "url": site.url}])
    page = context.new_page()
    page.emulate_media(reduced_motion="reduce")
    faults.watch(page, site.url)
    page.goto(f"/runs/{run.run.pk}/")
    for metric, (title, unit) in CHARTS.items():
        card = page.locator(f'[data-metric="{metric}"]')
        card.scroll_into_view_if_needed()
        points = sum(points_of(event, metric) for event in log)
        assert points >= 1
        page.locator(f'[data-metric="{metric}"][data-points="{points}"] canvas').first.wait_for()
        assert card.locator("h3").inner_text() == title
        assert card.locator(".hint").first.inner_text() == unit
        card.get_by_text("Table").click()
        cells = card.locator("tbody td").all_inner_texts()
        assert cells and all(cell.endswith("%") == (metric == "figures.unlikely") for cell in cells)
        card.get_by_text("Table").click()
    if folder := os.environ.get("GROVE_SHOTS"):
        page.screenshot(path=f"{folder}/package-figures.png", full_page=True)
    context.close()
    assert faults.recorded == []
    until_the_server_rests()


def points_of(event, metric):
    """Number of points of a chart that an event holds."""
    kind, _, name = metric.partition(".")
    if kind == "figures":
        return int(event.kind == "agent.update" and name in event.payload.get("figures", {}))
    numbers = event.payload.get("numbers", {}) if event.kind == "metric.logged" else {}
    return sum(one.startswith(f"{name}.") for one in numbers)
