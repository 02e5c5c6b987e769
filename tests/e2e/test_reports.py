"""Test of a report in a browser, from preview to guest."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.wellness import accessibility_errors

pytestmark = [
    pytest.mark.browser,
    pytest.mark.large,
    pytest.mark.django_db(transaction=True),
]


def blocks(run, tree: int) -> str:
    return f"""Rewards *grow*.

```grove chart
run: {run.pk}
series: reward
frozen: yesterday
```

```grove tree
run: {run.pk}
tree: {tree}
```

```grove chart
run: {run.pk}
series: rewrd
```
"""


def test_a_report_is_previewed_saved_and_read_by_a_guest(window, run, log):
    tree = next(event.tree for event in log if event.kind == "tree.open")
    text = blocks(run.run, tree)
    run.feed(log)
    page = window(f"/runs/{run.run.pk}/")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("link", name="New report").click()
    expect(page.get_by_label("Text")).to_have_value(re.compile(str(run.run.pk)))
    page.get_by_label("Title").fill("What grew")
    page.get_by_label("Text").fill(text)
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("1 problem in the blocks").wait_for()
    expect(page.get_by_label("Text")).to_have_value(text)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="What grew").wait_for()
    expect(page.locator(".report-figure")).to_have_count(2)
    expect(page.locator(".report-tree .node title").first).to_contain_text("Node 1, ")
    expect(page.get_by_text("Line 16: series")).to_be_visible()
    assert not accessibility_errors(page, "report")

    page.get_by_role("link", name="Share").click()
    page.get_by_role("button", name="Create link").click()
    link = page.locator("pre.mono").inner_text()
    page.context.clear_cookies()
    page.goto(link)
    expect(page.locator(".report-figure")).to_have_count(2)
    expect(page.locator("main a")).to_have_count(0)
