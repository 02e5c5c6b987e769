"""Golden kinds of the search: posteriors, the update rule, choices and tree shapes.

Statistical kinds use a fixed seed and enough draws that their own error is small compared with the
tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.config.golden_kind import Case, lookup
from engine.config.search import SearchConfig
from engine.config.thompson import AgentChoice, Posterior, SelectionOrder
from engine.search.agents import ThompsonChooser, UcbChooser
from engine.search.depth import depth_gamma, widening_discount
from engine.search.expansion import Expansion
from engine.search.node import SearchNode
from engine.search.posteriors import BetaPosterior, GaussianPosterior, make_posterior
from engine.search.scheduler import TreeBudget
from engine.search.strategies import planted
from engine.search.strategies.methods.thompson import Thompson
from engine.search.tree import SearchTree

SEED = 20_260
DRAWS = 40_000  # standard error of a probability at most 0.0025
MIN_TREES = 1_000

# Cases name strategies as TreeQuest does, or by our names.
ORDERS = {
    **{order.value: order for order in SelectionOrder},
    "stack": SelectionOrder.AGENT_FIRST,
    "multiarm_bandit_thompson": SelectionOrder.NODE_FIRST,
    "multiarm_bandit_ucb": SelectionOrder.NODE_FIRST,
}
UCB = "multiarm_bandit_ucb"


def posterior(case: Case) -> Any:
    prior = case["inputs"].get("prior") or {}
    beta = "a" in prior or case["inputs"].get("dist_type") == "beta"
    belief = BetaPosterior(**prior) if beta else GaussianPosterior(**prior)
    for reward in case["inputs"]["obs"]:
        belief.observe(reward)
    return belief.parameters()


def prior(case: Case) -> Any:
    family = Posterior(case["inputs"]["dist_type"])
    return make_posterior(family, case["inputs"].get("reward_average_prior")).parameters()


def backprop(case: Case) -> Any:
    inputs = case["inputs"]
    order = lookup(ORDERS, inputs["strategy"], "strategy")
    tree = _tree(inputs["agents"], Posterior(inputs["dist_type"]), order)
    for parent, agent, score in inputs["script"]:  # their nodes count from -1, ours from 0
        depth = tree.nodes[parent + 1].depth + 1
        tree.close(tree.open(Expansion(parent + 1, agent, depth, {})), score)
    return {
        "states": {str(node.id - 1): _arms(tree, node) for node in tree.nodes},
        "all_rewards_store": {
            agent: [node.score for node in tree.nodes if node.agent == agent]
            for agent in inputs["agents"]
        },
    }


def _arms(tree: SearchTree, node: SearchNode) -> dict[str, Any]:
    assert isinstance(tree.strategy, Thompson)
    arms = tree.strategy.arms(node)
    state: dict[str, Any] = {"children_expand_idx": [child - 1 for child in node.children]}
    for name, pool in arms.pools.items():
        state[f"GEN[{name}]"] = pool.gen.parameters()
        state[f"CONT[{name}]"] = pool.cont.parameters()
        state[f"child[{name}]"] = {
            str(node.children.index(child)): belief.parameters()
            for child, belief in pool.children.items()
        }
    beliefs = arms.agents.posteriors
    state["action_probas"] = {agent: belief.parameters() for agent, belief in beliefs.items()}
    return state


def p_widen(case: Case) -> Any:
    rng = np.random.default_rng(SEED)
    shares, dist_type = {}, case["inputs"].get("dist_type")
    for family in Posterior if dist_type is None else [Posterior(dist_type)]:
        gen, cont = make_posterior(family), make_posterior(family)
        for reward in case["inputs"]["gen_obs"]:
            gen.observe(reward)
        for reward in case["inputs"]["cont_obs"]:
            cont.observe(reward)
        wins = sum(gen.draw(rng) > cont.draw(rng) for _ in range(DRAWS))
        shares[f"p_gen_{family}"] = wins / DRAWS
    return shares


def p_agent(case: Case) -> Any:
    store = case["inputs"]["store"]
    dist_type = case["inputs"].get("dist_type")
    beta = any("a" in value for value in case["expected"].values() if isinstance(value, dict))
    family = Posterior(dist_type) if dist_type else Posterior.BETA if beta else Posterior.GAUSSIAN
    chooser = ThompsonChooser(tuple(store), family)
    for agent, rewards in store.items():
        for reward in rewards:
            chooser.observe(agent, reward)
    rng = np.random.default_rng(SEED)
    wins = dict.fromkeys(store, 0)
    for _ in range(DRAWS):
        wins[chooser.choose(rng)[0]] += 1
    beliefs = {f"posterior_{agent}": b.parameters() for agent, b in chooser.posteriors.items()}
    return beliefs | {f"p_agent{agent}": count / DRAWS for agent, count in wins.items()}


def ucb_agent(case: Case) -> Any:
    store = case["inputs"]["store"]
    chooser = UcbChooser(tuple(store))
    for agent, rewards in store.items():
        for reward in rewards:
            chooser.observe(agent, reward)
    chosen, values = chooser.choose(np.random.default_rng(SEED))
    return {"scores": values, "chosen": chosen}


def tree_shape(case: Case) -> Any:
    inputs = case["inputs"]
    agents = inputs.get("agents", ["0"])
    strategy = inputs.get("strategy", "multiarm_bandit_thompson")
    order = lookup(ORDERS, strategy, "strategy")
    choice = AgentChoice.UCB if strategy == UCB else AgentChoice.THOMPSON
    budget = TreeBudget(inputs["nodes"])
    rng = np.random.default_rng(SEED)
    widths, depths = [], []
    for _ in range(max(inputs["runs"], MIN_TREES)):
        tree = _tree(
            agents, Posterior(inputs["dist_type"]), order, rng, choice,
            rho=inputs.get("rho"), max_depth=inputs.get("max_depth"),
        )  # fmt: skip
        while claimed := budget.claim(tree):
            for expansion in claimed:
                tree.close(expansion.node, float(rng.random() < inputs["p"]))
        widths.append(len(tree.nodes[0].children))
        depths.append(max(node.depth for node in tree.nodes))
    return {"mean_root_children": float(np.mean(widths)), "mean_max_depth": float(np.mean(depths))}


def _tree(
    agents: Any,
    family: Posterior,
    order: SelectionOrder,
    rng: np.random.Generator | None = None,
    choice: AgentChoice = AgentChoice.THOMPSON,
    **limits: Any,
) -> SearchTree:
    names = [str(i) for i in range(agents)] if isinstance(agents, int) else agents
    rng = rng or np.random.default_rng(SEED)
    search = SearchConfig(posterior=family, selection_order=order, agent_choice=choice, **limits)
    return planted(names, search, rng)


def depth_weight(case: Case) -> Any:
    inputs = case["inputs"]
    gamma = inputs.get("gamma_d")
    if gamma is None:
        gamma = depth_gamma(inputs["depth"], inputs["rho"])
    return [inputs["r_gen"] * widening_discount(gamma, count) for count in inputs["c"]]
