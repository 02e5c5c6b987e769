"""Tests against TreeQuest's AB-MCTS-A as an oracle, on the same scripted and on random scores."""

import numpy as np
import pytest

from engine.config.thompson import AgentChoice, SelectionOrder
from engine.search.expansion import Expansion
from engine.search.scheduler import TreeBudget
from tests.engine.search.growing import FAMILIES, ORDERS, make_tree, thompson
from tests.helpers.extras import needed
from tests.helpers.large import large_but

treequest = needed("treequest", "the oracle: python3 workers/local/install.py dev")

AGENTS = ["oak", "elm"]
STRATEGIES = {
    SelectionOrder.AGENT_FIRST: "stack",
    SelectionOrder.NODE_FIRST: "multiarm_bandit_thompson",
}
TREES = 200


def oracle(family, order):
    algorithm = treequest.ABMCTSA(dist_type=str(family), model_selection_strategy=STRATEGIES[order])
    return algorithm, algorithm.init_tree()


def oracle_nodes(state):
    return sorted(state.tree.get_nodes(), key=lambda node: node.expand_idx)


def random_script(seed, nodes=25):
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(0, i + 1)), str(rng.choice(AGENTS)), float(rng.choice([0, 0.25, 1])))
        for i in range(nodes)
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_scripted_scores_give_the_same_posteriors(family, order, seed):
    algorithm, state = oracle(family, order)
    state, _ = algorithm.ask_batch(state, 1, AGENTS)  # fills the tree-wide store
    tree = make_tree(AGENTS, family, order)
    for parent, agent, score in random_script(seed):
        node = oracle_nodes(state)[parent]
        state.thompson_states.get_or_create(node, AGENTS)
        trial = state.trial_store.create_trial(node, agent)
        algorithm.tell(state, trial.trial_id, ("program", score))
        expansion = Expansion(parent, agent, tree.nodes[parent].depth + 1, {})
        tree.close(tree.open(expansion), score)

    for theirs in oracle_nodes(state):
        known = state.thompson_states.get(theirs)
        if known is None:
            continue
        ours = tree.strategy.arms(tree.nodes[theirs.expand_idx + 1])
        for agent in AGENTS:
            assert ours.agents.posteriors[agent].parameters() == pytest.approx(
                known.action_probas[agent].params
            )
        for name, pool in ours.pools.items():
            pair = known.gen_vs_cont_probas[name]
            assert pool.gen.parameters() == pytest.approx(pair["GEN"].params)
            assert pool.cont.parameters() == pytest.approx(pair["CONT"].params)
            children = [p.parameters() for p in pool.children.values()]
            expected = [p.params for _, p in sorted(known.node_probas[name].items())]
            assert children == [pytest.approx(params) for params in expected]


def statistics(trees):
    """Per tree: children of the root, greatest depth, share of the first agent."""
    rows = [
        (
            sum(depth == 1 for depth, _ in nodes),
            max(depth for depth, _ in nodes),
            np.mean([agent == AGENTS[0] for _, agent in nodes]),
        )
        for nodes in trees
    ]
    return np.mean(rows, axis=0), np.var(rows, axis=0) / len(rows)


def oracle_tree(family, order, rng, skill):
    algorithm, state = oracle(family, order)
    made = {}

    def writer(agent):
        def write(_):
            made[len(made)] = agent
            return "program", float(rng.random() < skill[agent])

        return write

    for _ in range(8):
        state = algorithm.step(state, {a: writer(a) for a in AGENTS}, inplace=True)
    return [(node.depth, made[node.expand_idx]) for node in oracle_nodes(state)[1:]]


def our_tree(family, order, rng, skill, seed):
    tree = make_tree(AGENTS, family, order, seed)
    for _ in range(8):
        expansion = tree.select()
        tree.close(tree.open(expansion), float(rng.random() < skill[expansion.agent]))
    return [(node.depth, node.agent) for node in tree.nodes[1:]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("family", large_but(FAMILIES[:1], FAMILIES))
def test_random_scores_give_trees_of_the_same_shape(family, order):
    skill, rng = {"oak": 0.6, "elm": 0.2}, np.random.default_rng(0)
    np.random.seed(0)  # the oracle draws from the global generators
    theirs, their_error = statistics([oracle_tree(family, order, rng, skill) for _ in range(TREES)])
    ours, our_error = statistics(
        [our_tree(family, order, rng, skill, seed) for seed in range(5 * TREES)]
    )
    assert np.all(np.abs(ours - theirs) < 4 * np.sqrt(their_error + our_error))


class Replay:
    """A generator that replays the oracle's draws, in its order and only for its parameters."""

    def __init__(self, draws):
        self.draws = list(draws)

    def beta(self, a, b):
        return self._each(np.broadcast_arrays(a, b), self._beta)

    def standard_t(self, nu):
        return self._each([np.asarray(nu)], self._standard_t)

    def _each(self, parameters, draw):
        """One draw for each row of parameters, or for the only one."""
        if not parameters[0].ndim:
            return draw(*map(float, parameters))
        return np.array([draw(*map(float, row)) for row in zip(*parameters, strict=True)])

    def _beta(self, a, b):
        params, value = self.draws.pop(0)
        assert {"a": a, "b": b} == pytest.approx(params)
        return value

    def _standard_t(self, nu):
        params, value = self.draws.pop(0)
        assert nu == params["nu"]
        return (value - params["m"]) / np.sqrt(params["tau_square"] / params["kappa"])


def recorded(monkeypatch):
    """Every draw of the oracle from now on: (distribution, parameters, value)."""
    from treequest.algos.ab_mcts_a.prob_state import ProbabilisticDist

    draws, draw_sample = [], ProbabilisticDist.draw_sample

    def recording(dist):
        value = float(draw_sample(dist))
        draws.append((dist, dict(dist.params), value))
        return value

    monkeypatch.setattr(ProbabilisticDist, "draw_sample", recording)
    return draws


def vain_draws(state):
    """Distributions that the oracle draws from although the result decides nothing: GEN and CONT of
    a node without children."""
    return {
        id(dist)
        for known in state.thompson_states.states.values()
        for name, pair in known.gen_vs_cont_probas.items()
        if not known.node_probas[name]
        for dist in pair.values()
    }


@pytest.mark.parametrize(
    ("strategy", "order", "choice"),
    [
        ("stack", SelectionOrder.AGENT_FIRST, AgentChoice.THOMPSON),
        ("multiarm_bandit_thompson", SelectionOrder.NODE_FIRST, AgentChoice.THOMPSON),
        ("multiarm_bandit_ucb", SelectionOrder.NODE_FIRST, AgentChoice.UCB),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_one_in_flight_is_the_oracle_draw_for_draw(family, strategy, order, choice, monkeypatch):
    """Open, close, open, as in every rollout: the same draws give the same 60 choices."""
    np.random.seed(7)
    draws, rng = recorded(monkeypatch), np.random.default_rng(7)
    algorithm = treequest.ABMCTSA(dist_type=str(family), model_selection_strategy=strategy)
    state, replay, budget = algorithm.init_tree(), Replay([]), TreeBudget(60)
    tree = thompson(AGENTS, family, order, replay, agent_choice=choice)
    for _ in range(60):
        draws.clear()
        state, (trial,) = algorithm.ask_batch(state, 1, AGENTS)
        vain = vain_draws(state)
        replay.draws = [(params, value) for dist, params, value in draws if id(dist) not in vain]
        (expansion,) = budget.claim(tree)
        assert (expansion.parent - 1, expansion.agent) == (trial.node_to_expand, trial.action)
        assert not replay.draws
        score = float(rng.choice([0, 0.25, 1]))
        algorithm.tell(state, trial.trial_id, ("program", score))
        tree.close(expansion.node, score)
    assert budget.claim(tree) == []
