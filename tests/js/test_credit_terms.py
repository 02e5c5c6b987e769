"""Tests that the credit terms on the page add up to the credit that the engine recorded."""

import pytest

from engine.config.credit import CreditConfig
from engine.config.methods import formula_of
from tests.helpers.sample_log import Sample, sample_events
from tests.js.test_resumed import on_the_wire

pytestmark = pytest.mark.browser

FORMULA = formula_of({"credit": {"advantage": "mars2"}})
TERMS = """async ([events, config, formula]) => {
    const { fold } = await import("/static/js/stream/fold.js");
    const { creditTerms } = await import("/static/js/node/credit.js");
    const found = [];
    for (const tree of fold(events).trees.values())
        for (const node of tree.nodes.values())
            found.push({ node, terms: creditTerms(tree, node, config, formula) });
    return found;
}"""


def test_the_terms_of_every_node_come_to_what_the_engine_said(module_page):
    sample = Sample(seed=6, steps=1, trees=6, nodes=10, failure_share=0.1)
    config = CreditConfig()
    wire = [on_the_wire(event) for event in sample_events(sample)]
    result = module_page.evaluate(TERMS, [wire, config.model_dump(mode="json"), FORMULA])
    scored = [one for one in result if one["node"]["score"] is not None]
    assert len(result) == 60 and 40 < len(scored) < 60
    for one in result:
        node, terms = one["node"], one["terms"]
        if node["score"] is None:
            assert terms is None
            continue
        assert node["shaped"] == pytest.approx(terms["raw"] + terms["shaping"])
        assert terms["penalty"] == 0
        group = terms["group"]
        assert group["explained"] == pytest.approx(node["advantage"])
        if group["deviation"]:
            assert node["advantage"] == pytest.approx(
                (node["shaped"] - group["mean"]) / group["deviation"]
            )
    assert any(one["terms"]["parent"] is not None for one in scored)


def test_a_penalty_is_what_shaping_does_not_explain(module_page):
    sample = Sample(seed=6, steps=1, trees=1, nodes=4, failure_share=0.0)
    wire = [on_the_wire(event) for event in sample_events(sample)]
    for event in wire:
        if event[2] == "node.credit" and event[3]["node"] == 2:
            event[3]["shaped"] -= 0.25
    config = CreditConfig().model_dump(mode="json")
    result = module_page.evaluate(TERMS, [wire, config, FORMULA])
    assert [one["terms"]["penalty"] for one in result] == pytest.approx([0, -0.25, 0, 0])
    assert [one["terms"]["group"]["explained"] for one in result] == [None] * 4
