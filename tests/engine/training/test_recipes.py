"""Tests that every recipe trains for real: two small steps of the engine.

Two processes train the recipes one after another, so that the driver starts twice instead of once
per recipe. The properties of each recipe are checked in its events, with the formulas written out
again here.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load_file

from engine.config.schema import RunConfig, read_config
from engine.config.setting_warnings import setting_warnings
from engine.config.weight_sharing import weight_groups
from engine.credit import ADVANTAGES
from engine.credit.assign import TreeRecord, assign_credit
from engine.credit.shaping import tree_shaping
from engine.events.log import read_all
from engine.losses import POLICY_LOSSES
from engine.policy.models.load import model_directory
from engine.recipes import FOLDER, load_recipe, recipe_data, recipe_names
from tests.engine.training.claims import claims_of, names
from tests.helpers.large import large_but
from tests.helpers.small_recipes import CLUSTERS, RANKED, REFILLED, TREES, small_overrides
from tests.helpers.waiting import patience

DEADLINE = 500
TRAIN = """
import sys
from engine.__main__ import main
from tests.helpers.large import large_but
for run_dir in sys.argv[1:]:
    print(main(["train", run_dir]), flush=True)
"""


def settings_hash(name):
    """Hash of the recipe's own settings; comments may change."""
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text())
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]


def recorded(name):
    """(version, hash of the settings at that version), as the recipe itself records them."""
    text = (FOLDER / f"{name}.toml").read_text()
    line = re.search(r"^recipe_version = (\d+)  # ([0-9a-f]{12})$", text, re.MULTILINE)
    return line and (int(line[1]), line[2])


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_that_changes_is_a_new_version(name):
    version = recipe_data(name)["recipe_version"]
    assert load_recipe(name).recipe_version == version >= 1
    assert recorded(name) == (version, settings_hash(name)), (
        f"{name}.toml has other settings than its version records: raise recipe_version, then "
        "write the hash of the new settings behind it: recipe_version = N  # HASH"
    )


def test_every_promised_recipe_is_there():
    trees = {"mars2", "mars2-8b", "mars2-32b", "mars2-homogeneous", "tree-single", "dr-mas", "demo",
             "marti-mars2", "marti-mars2-32b", "rae"}  # fmt: skip
    flat = {"grpo", "gspo", "dr-grpo", "rloo", "reinforce-pp", "cispo"}
    assert trees | flat <= set(recipe_names())
    assert flat <= {n for n in recipe_names() if load_recipe(n).search.max_depth == 1}


def test_every_method_has_a_recipe_that_trains_it():
    recipes = [load_recipe(name) for name in recipe_names()]
    assert {recipe.credit.advantage for recipe in recipes} == set(ADVANTAGES)
    assert {recipe.loss.policy for recipe in recipes} == set(POLICY_LOSSES)


TRAINED = [name for name in recipe_names() if name not in CLUSTERS]
"""The others are `mars2` and `marti-mars2` at cluster size: their models, ranks and generators."""
KINDS = ["mars2", "cispo", "dr-mas", RANKED, REFILLED]
"""Tree-wide credit with GSPO, a flat group with CISPO, credit per agent, learner ranks, refilled
trees."""


def small(name) -> RunConfig:
    """The recipe with its own structure, at a size that trains in seconds."""
    return load_recipe(name, small_overrides(load_recipe(name).model_dump(mode="json")))


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory, ray_address):
    """Function that waits for a recipe's run and returns its directory; two train at a time. Only
    those are trained that this run of the suite checks."""
    checked = {RANKED, REFILLED} | {
        item.callspec.params["name"]
        for item in request.session.items
        if item.originalname == test_the_recipe_trains_as_it_claims.__name__
    }
    trained = [name for name in TRAINED if name in checked]
    folder = tmp_path_factory.mktemp("recipes")
    environment = os.environ | {"RAY_ADDRESS": ray_address}

    def train(names):
        for name in names:
            (folder / name).mkdir()
            (folder / name / "config.json").write_text(small(name).model_dump_json())
        command = [sys.executable, "-c", TRAIN, *(str(folder / name) for name in names)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            timeout=DEADLINE * patience(),
            check=False,
        )
        return dict(zip(names, done.stdout.split(), strict=False)), done.stderr[-3000:]

    with ThreadPoolExecutor(2) as pool:
        parts = [trained[start::2] for start in (0, 1)]
        done = [pool.submit(train, names) for names in parts]

        def ended(name):
            codes, said = done[trained.index(name) % 2].result()
            assert codes.get(name) == "0", said
            return folder / name

        yield ended


class Trees:
    """A run's trees from its log, each with its scored nodes in order."""

    def __init__(self, run_dir):
        self.log = list(read_all(run_dir))
        nodes = {}
        for event in self.log:
            if event.node is not None:
                kinds = nodes.setdefault(event.tree, {}).setdefault(event.node, {})
                kinds[event.kind] = event.payload
        opened = {e.tree: e.payload["step"] for e in self.log if e.kind == "tree.open"}
        self.steps = [opened[tree] for tree in nodes]
        self.trees = [
            {n: k for n, k in tree.items() if k["node.close"]["score"] is not None}
            for tree in nodes.values()
        ]

    def payloads(self, kind):
        return [event.payload for event in self.log if event.kind == kind]

    def columns(self, tree):
        """(scores, positions of parents, agents, advantages) of one tree's scored nodes."""
        place = {0: -1} | {node: position for position, node in enumerate(tree)}
        kinds = list(tree.values())
        return (
            np.array([k["node.close"]["score"] for k in kinds]),
            np.array([place[k["node.open"]["parent"]] for k in kinds]),
            np.array([k["node.open"]["agent"] for k in kinds]),
            np.array([k["node.credit"]["advantage"] for k in kinds]),
        )

    def shaped(self, tree, config):
        """Rewards of one tree's scored nodes, after shaping."""
        scores, parents, *_ = self.columns(tree)
        shaping = config.credit.shaping_gamma, config.credit.shaping_lambda
        return tree_shaping(scores, parents, *shaping)

    def by_step(self):
        """The trees of the first step, and those of the second."""
        steps = (1, 2)
        return [[t for t, s in zip(self.trees, self.steps, strict=True) if s == n] for n in steps]


def is_uniform(tree):
    return len({kinds["node.close"]["score"] for kinds in tree.values()}) < 2


def standard(values):
    return (values - values.mean()) / (values.std(ddof=1) + 1e-6) if np.ptp(values) else 0 * values


def of_each_agent(rewards, agents):
    result = np.zeros(len(rewards))
    for agent in set(agents):
        result[agents == agent] = standard(rewards[agents == agent])
    return result


CREDIT = {
    "mars2": lambda rewards, agents: standard(rewards),
    "grpo": lambda rewards, agents: standard(rewards),
    "per_agent": of_each_agent,
    "dr_grpo": lambda rewards, agents: rewards - rewards.mean(),
    "rloo": lambda rewards, agents: np.array(
        [r - np.delete(rewards, v).mean() for v, r in enumerate(rewards)]
    ),
}
"""Formulas written out again; other methods have golden cases, and are computed from the events."""


def by_its_method(tree, config):
    """Advantages of a tree as its method computes them from what the events hold."""
    closed = [kinds["node.close"] for kinds in tree.values()]
    opened = [kinds["node.open"] for kinds in tree.values()]
    limits = {agent.name: agent.sampling.max_new_tokens for agent in config.agents}
    record = TreeRecord(
        node_ids=list(tree),
        parents=[one["parent"] for one in opened],
        agents=[one["agent"] for one in opened],
        scores=[one["score"] for one in closed],
        lengths=[one["tokens"] for one in closed],
        # Of an answer's log-probabilities methods read the mean alone.
        further={"logprobs": [[one["mean_logprob"]][: one["tokens"]] for one in closed]},
    )
    of_nodes = [limits[one["agent"]] for one in opened]
    return assign_credit(record, config.credit, of_nodes).advantages_N


def of_trees(log, config):
    """(expected, actual) advantages of every tree by itself."""
    if config.credit.overlong_buffer_tokens:
        return  # the penalty is in its golden cases
    formula = CREDIT.get(config.credit.advantage)
    for tree in log.trees:
        _, _, agents, actual = log.columns(tree)
        rewards = log.shaped(tree, config)
        yield formula(rewards, agents) if formula else by_its_method(tree, config), actual


def test_a_claim_is_of_a_recipe():
    assert names() and names() <= set(recipe_names())


@pytest.mark.slow
@pytest.mark.parametrize("name", large_but(KINDS, TRAINED))
def test_the_recipe_trains_as_it_claims(runs, name):
    run_dir = runs(name)
    config, log = read_config(run_dir / "config.json"), Trees(run_dir)
    assert (config.recipe, config.recipe_version) == (name, recorded(name)[0])

    ends = log.payloads("step.end")
    refilled = sum(end["refilled_trees"] for end in ends)
    assert len(log.trees) == 2 * config.training.trees_per_step + refilled
    for tree in log.trees:
        assert config.search.max_depth != 1 or (log.columns(tree)[1] == -1).all(), "a flat group"
    claims = claims_of(name)
    for expected, advantages in getattr(claims, "advantages", of_trees)(log, config):
        assert advantages == pytest.approx(expected, abs=1e-4)
    uniform = sum(map(is_uniform, log.trees))
    filtered = sum(end["filtered_trees"] for end in ends)
    assert filtered == (uniform if config.credit.dynamic_filter else 0) < len(log.trees)

    updates = log.payloads("agent.update")
    assert {reason for end in ends for reason in end.get("left", {})} <= getattr(
        claims, "REASONS", set()
    )
    assert all(update["mismatch"] < 1e-3 for update in updates)
    if hasattr(claims, "check"):
        claims.check(log, config, run_dir)
    assert all(update["nodes"] >= config.training.batch_nodes for update in updates)
    warned = {line["message"] for line in log.payloads("log.line") if line["level"] == "warning"}
    assert {str(one) for one in setting_warnings(config)} <= warned
    if setting_warnings(config):
        assert all(update["clip_fraction"] == 0 for update in updates)
    assert any(update["kl"] for update in updates) == config.loss.reads_reference
    owners = weight_groups(config.agents)
    learned = {update["agent"] for update in updates}
    assert learned == set(owners) == {path.name for path in (run_dir / "models").iterdir()}
    assert {u["agent"]: u["shared_with"] for u in updates} == {
        owner: [agent.name for agent in group[1:]] for owner, group in owners.items()
    }
    assert {k["node.open"]["agent"] for tree in log.trees for k in tree.values()} == {
        agent.name for agent in config.agents
    }
    for owner, (agent, *_) in owners.items():
        before = load_file(model_directory(agent.model) / "model.safetensors")
        after = load_file(run_dir / "models" / owner / "model.safetensors")
        moved = [np.mean(after[key] != before[key]) for key in before]
        assert np.mean(moved) > 0.3, f"{owner} has hardly changed"


@pytest.mark.slow
def test_the_next_step_is_generated_with_the_weights_of_both_ranks(runs):
    run_dir = runs(RANKED)
    nodes = [
        update["nodes"]
        for version, update in enumerate(Trees(run_dir).payloads("agent.update"), 1)
        if update["version"] == version and update["mismatch"] < 1e-4
    ]
    assert len(nodes) == 2 and all(nodes)
    (name,) = [agent.name for agent in read_config(run_dir / "config.json").agents]
    first = load_file(model_directory("starter:oak") / "model.safetensors")
    assert first.keys() == load_file(run_dir / "models" / name / "model.safetensors").keys()


@pytest.mark.slow
def test_trees_that_are_left_out_are_replaced_by_further_problems(runs):
    log = Trees(runs(REFILLED))
    opened, ends = log.payloads("tree.open"), log.payloads("step.end")
    assert len({tree["problem"] for tree in opened}) == len(opened), "no problem comes twice"
    for end in ends:
        grown = [tree for tree in opened if tree["step"] == end["step"]]
        kept = len(grown) - end["filtered_trees"]
        assert end["refilled_trees"] == len(grown) - TREES
        assert kept == TREES or (kept < TREES and end["refilled_trees"] > 0)
    assert sum(end["refilled_trees"] for end in ends) > 0
    learned = sum(update["nodes"] for update in log.payloads("agent.update"))
    assert learned == sum(len(tree) for tree in log.trees if not is_uniform(tree))
