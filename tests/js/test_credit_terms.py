"""Tests that the credit terms on the page add up to the credit that the engine recorded."""

import pytest

from engine.config.credit import CreditConfig
from engine.config.methods import formula_of
from engine.credit.assign import TreeRecord, assign_credit
from engine.events.vocabulary import Event
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


def test_parts_and_gates_come_to_what_the_engine_said(module_page):
    config = CreditConfig(concise={"weight": -0.5}, format={"gate": True}, overlong_buffer_tokens=4)
    log = list(sample_events(Sample(seed=6, steps=1, trees=4, nodes=8, failure_share=0.1)))
    wire = [on_the_wire(event) for event in [*log[:-1], *credited(log, config)]]
    result = module_page.evaluate(TERMS, [wire, config.model_dump(mode="json"), FORMULA])
    scored = [one for one in result if one["node"]["score"] is not None]
    assert len(scored) > 20
    for one in scored:
        terms = one["terms"]
        assert [name for name, _ in terms["gates"]] == ["format"]
        assert [name for name, _ in terms["parts"]] == ["concise", "overlong"]
        assert terms["penalty"] == 0
    assert any(one["node"]["score"] and not one["terms"]["gates"][0][1] for one in scored)


def credited(log, config):
    """The credit of the log's trees by these settings, as events; every third answer counts as one
    without a program."""
    seq = log[-2].seq
    for tree in sorted({event.tree for event in log if event.kind == "tree.open"}):
        of_tree = [event for event in log if event.tree == tree]
        opened = {e.node: e.payload for e in of_tree if e.kind == "node.open"}
        closed = {e.node: e.payload for e in of_tree if e.kind == "node.close"}
        nodes = sorted(closed)
        record = TreeRecord(
            nodes,
            [opened[node]["parent"] for node in nodes],
            [opened[node]["agent"] for node in nodes],
            [closed[node]["score"] for node in nodes],
            [closed[node]["tokens"] for node in nodes],
            {"programs": ["x" if node % 3 else "" for node in nodes]},
        )
        credit = assign_credit(record, config, 60)
        for place, node in enumerate(nodes):
            if closed[node]["score"] is None:
                continue
            seq += 1
            payload = {
                "shaped": float(credit.shaped_N[place]),
                "advantage": float(credit.advantages_N[place]),
                "parts": {name: float(values[place]) for name, values in credit.terms.items()},
                "gates": {name: float(values[place]) for name, values in credit.gates.items()},
            }
            yield Event(seq, log[-1].time, "node.credit", tree, node, payload)
