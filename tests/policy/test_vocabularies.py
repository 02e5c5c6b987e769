"""Agents of different vocabularies in one tree: each reads and learns in token ids of its own."""

import pytest

from engine.config.credit import Score
from engine.config.sandbox import SandboxConfig
from engine.config.search import SearchConfig
from engine.credit.assign import TreeRecord, assign_credit
from engine.policy.host import PolicyHost
from engine.policy.learner.rows import TrainingRow
from engine.problems.extraction import extract_program
from engine.problems.generator import make_problem
from engine.rollout.forest import Forest, training_score
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.verdict_cache import RememberingVerifier
from tests.policies import tiny_config

NAMES = ("oak", "fern")


@pytest.fixture(scope="module")
def hosts():
    run = tiny_config("starter:oak", "starter:fern").model_dump(mode="json")
    sampling = {"max_prompt_tokens": 200, "max_new_tokens": 24}
    own = ({"temperature": 0.8, "top_p": 0.9}, {"temperature": 1.2, "top_k": 50})
    for agent, name, options in zip(run["agents"], NAMES, own, strict=True):
        agent |= {"name": name, "sampling": sampling | options}
        agent["optimizer"]["epsilon"] = 1e-6
    run = tiny_config(agents=run["agents"])
    return {a.name: PolicyHost([[a]], run, [seed]) for seed, a in enumerate(run.agents)}, run


@pytest.fixture(scope="module")
def forest(hosts):
    """Two trees, written by both and verified for real."""
    problems = [make_problem(2, number)[0] for number in range(2)]
    search = SearchConfig(nodes_per_tree=10)
    grown = Forest(problems, NAMES, search, training_score(Score.FRACTION), [5])
    with Sandbox(SandboxConfig()) as sandbox:
        verifier = RememberingVerifier(sandbox)
        while claims := grown.claim(grown.trees):
            for claim in claims:
                name = claim.expansion.agent
                request = claim.tree.request(claim.expansion)
                (answer,) = hosts[0][name].answer({name: [request]})[name]
                (verification,) = verifier.verify([(claim.tree.problem, answer.program)])
                grown.close(claim, answer, verification)
    return grown


def tokenizer_of(hosts, name):
    return hosts[0][name].groups[name].policy.tokenizer


def test_one_tree_holds_ids_of_two_vocabularies(hosts, forest):
    sizes = {name: len(tokenizer_of(hosts, name)) for name in NAMES}
    assert sizes["oak"] != sizes["fern"]
    crossed = 0
    for tree in forest.trees:
        assert {node.agent for node in tree.written.values()} == set(NAMES)
        for node in tree.written.values():
            tokenizer, generation = tokenizer_of(hosts, node.agent), node.answer.generation
            prompt = tokenizer.decode(generation.prompt_ids)
            assert tree.problem.statement.strip() in prompt
            text = tokenizer.decode(generation.output_ids, skip_special_tokens=True)
            assert node.answer.program == extract_program(text)
            parent = tree.written.get(node.parent)
            if parent and parent.agent != node.agent and parent.answer.program:
                # The other's program, handed over as text and read in ids of one's own.
                assert parent.answer.program.strip() in prompt
                crossed += 1
    assert crossed > 0


def test_each_learns_from_its_own_nodes_in_the_ids_that_it_wrote(hosts, forest):
    rows = {name: [] for name in NAMES}
    for tree in forest.trees:
        nodes = list(tree.written.values())
        record = TreeRecord(
            node_ids=[node.node for node in nodes],
            parents=[node.parent for node in nodes],
            agents=[node.agent for node in nodes],
            scores=[node.score for node in nodes],
            lengths=[len(node.answer.generation.output_ids) for node in nodes],
        )
        credit = assign_credit(record, hosts[1].credit, 24)
        for node, advantage in zip(nodes, credit.advantages_N, strict=True):
            g = node.answer.generation
            rows[node.agent].append(
                TrainingRow(
                    g.prompt_ids, g.output_ids, g.logprobs, float(advantage), 0, g.temperature
                )
            )
    for name in NAMES:
        stats = hosts[0][name].learn(name, rows[name], 0.5)
        # Were an id of the other's vocabulary among them, or one encoded anew, it would be large.
        assert stats.mismatch < 1e-4
        assert stats.nodes == len(rows[name]) > 0
        assert {row.temperature for row in rows[name]} == {0.8 if name == "oak" else 1.2}
        (options,) = hosts[0][name].groups[name].learner.optimizer.param_groups
        assert options["eps"] == 1e-6
    # Fern's ids mean something to oak too, but something else.
    assert hosts[0]["oak"].learn("oak", rows["fern"], 0.5).mismatch > 0.1
