"""state(seq) is one thing: the server's fold and the browser's come to the same JSON."""

import json

import pytest

from tests.browser.sample_log import Sample, sample_events
from tests.browser.test_resumed import interrupted_log, on_the_wire
from webapp.telemetry.fold import fold

pytestmark = pytest.mark.browser

FOLDED = """async ([events, cuts]) => {
    const { asJson, emptyState, fold } = await import("/static/js/fold.js");
    const state = emptyState();
    let from = 0;
    return cuts.map((to) => {
        fold(events.slice(from, to), state);
        from = to;
        return JSON.stringify(asJson(state));
    });
}"""


@pytest.mark.parametrize("log", ["whole", "interrupted"])
def test_the_server_and_the_browser_fold_alike_at_every_moment(module_page, log):
    whole = Sample(seed=4, steps=4, trees=3, nodes=5, failure_share=0.1)
    events = interrupted_log() if log == "interrupted" else list(sample_events(whole))
    told = [on_the_wire(event) for event in events]
    cuts = [*range(0, len(told), 23), len(told)]
    for cut, found in zip(cuts, module_page.evaluate(FOLDED, [told, cuts]), strict=True):
        assert json.loads(found) == fold(told[:cut]).as_json(), f"after {cut} events"
