"""Tests that an advantage has the entropies of the weights that learn from its nodes."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from engine.credit.columns import TreeRecord
from engine.training.measuring import with_entropies
from tests.helpers.plugin_packages import a_package, trained
from tests.helpers.policies import tiny_config, tiny_policy

UNSURE = '''
"""Advantage of a mean entropy: the reward, and its figure for each node."""
from engine.config.methods import Figure

NEEDS = {"lengths", "entropies"}
FIGURES = {"entropy": Figure("Mean entropy of answers", unit="nats")}


def over_group(rewards_N, context):
    for length, entropies_L in zip(context["lengths"], context["entropies"], strict=True):
        assert len(entropies_L) == length
    return rewards_N + 1.0


def figures(rewards_N, advantages_N, context):
    import numpy as np

    return {"entropy": np.array([one.mean() for one in context["entropies"]])}
'''


def a_tree(*agents):
    """A tree whose nodes 1, 2, ... these agents wrote; node n has the output id n."""
    written = {
        node: SimpleNamespace(
            answer=SimpleNamespace(
                generation=SimpleNamespace(
                    prompt_ids=[0], output_ids=[node] * node, logprobs=[0.0] * node,
                    policy_version=0, temperature=1.0,
                )
            )
        )
        for node in range(1, len(agents) + 1)
    }  # fmt: skip
    return SimpleNamespace(written=written)


def a_record(owners):
    count = len(owners)
    return TreeRecord(
        list(range(1, count + 1)), [0] * count, list(owners), [0.0] * count,
        list(range(1, count + 1)), {"owners": owners, "problems": [7] * count},
    )  # fmt: skip


class Measured:
    """A team that gives each owner's rows a number of their own, times the output ids."""

    def entropies(self, rows):
        numbers = {"oak": 1.0, "fern": 100.0}
        return [
            [np.array(row.output_ids) * numbers[owner] for row in mine]
            for owner, mine in rows.items()
        ]


def test_each_node_has_those_of_the_policy_that_wrote_it():
    owners = [["oak", "fern", "oak"], ["fern", "fern"]]
    trees = [a_tree(*names) for names in owners]
    first, second = with_entropies(Measured(), trees, [a_record(names) for names in owners])
    assert [one.tolist() for one in first.further["entropies"]] == [[1.0], [200.0] * 2, [3.0] * 3]
    assert [one.tolist() for one in second.further["entropies"]] == [[100.0], [200.0] * 2]
    assert first.further["problems"] == [7] * 3


@pytest.mark.large
@pytest.mark.slow
def test_they_are_the_learner_s_own_at_the_start_of_each_update(tmp_path):
    entry_points = {"grove.advantages": {"unsure": "grove_toy.unsure"}}
    package = a_package(tmp_path / "package", {"unsure": UNSURE}, entry_points)
    data = tiny_config(
        tiny_policy(tmp_path / "model", 1),
        training={"steps": 3, "trees_per_step": 4, "validate_every": 9, "checkpoint_every": 9},
        problems={"seed": 3, "train": 20, "validation": 0, "test": 0},
    ).model_dump(mode="json")
    data["credit"] |= {"advantage": "unsure", "shaping_gamma": 0.0}
    log = trained(tmp_path / "run", data, package)
    learned = defaultdict(list)
    for event in log:
        if event.kind == "tree.learned":
            for node in event.payload["nodes"]:
                learned[event.payload["step"]].append(np.mean(node["entropy"]))
    logged = {
        event.payload["step"]: event.payload["numbers"]
        for event in log
        if event.kind == "metric.logged" and "unsure.entropy.agent-0" in event.payload["numbers"]
    }
    assert sorted(logged) == sorted(learned) == [1, 2, 3]
    for step, means in learned.items():
        assert logged[step]["unsure.entropy.agent-0"] == pytest.approx(np.mean(means), abs=2e-3)
