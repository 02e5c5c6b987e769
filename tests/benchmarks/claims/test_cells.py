"""Tests of the claims' definitions and cells: what arms share, digests and stored results."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from benchmarks.claims import RESULTS
from benchmarks.claims.catalogue import BY_NAME, CLAIMS
from benchmarks.claims.cell import Cell, ResultDamaged, cells_of, read_result, write_result
from benchmarks.claims.claim import Plan
from benchmarks.claims.stages import Workplace, models_of
from engine.policy.starters import starter_directory
from engine.recipes import recipe_names
from tests.benchmarks.claims.builders import OPEN, SEARCH, SHAPING, TEAM, result_of


def flat(data, prefix=""):
    """Paths and values of nested settings."""
    if isinstance(data, dict):
        return {k: v for key, one in data.items() for k, v in flat(one, f"{prefix}{key}.").items()}
    return {prefix.rstrip("."): data}


def test_every_claim_names_arms_and_figures_that_it_has():
    assert len(BY_NAME) == len(CLAIMS)
    for claim in CLAIMS:
        names = [arm.name for arm in claim.arms]
        assert len(set(names)) == len(names) and claim.control in names
        assert {arm.against or claim.control for arm in claim.arms} <= set(names)
        assert claim.primary in {figure.name for figure in claim.figures}
        assert {arm.recipe for arm in claim.arms} <= set(recipe_names())
        assert claim.control_of(claim.arm(claim.control)) is None


OF_A_RUN = {"recipe", "recipe_version", "agents", "evaluation.samples_per_problem"}
"""What another team may change; the run itself evaluates nothing."""
OF_GRPO = {"credit.advantage", "credit.shaping_gamma", "loss.policy", "loss.aggregation",
           "loss.clip_low", "loss.clip_high", "loss.kl_coefficient"}  # fmt: skip
"""What the recipe `grpo` changes beside them."""


def test_arms_differ_from_their_control_only_in_what_they_state():
    for claim in CLAIMS:
        for arm in claim.arms:
            control = claim.control_of(arm)
            if control is None:
                continue
            mine, theirs = (
                flat(Cell(claim, one, 1, Plan()).config.model_dump(mode="json"))
                for one in (arm, control)
            )
            differing = {path for path in mine | theirs if mine.get(path) != theirs.get(path)}
            stated = set(arm.settings) if arm.recipe == control.recipe else OF_A_RUN
            if arm.recipe == "grpo":
                stated = stated | OF_GRPO | set(arm.settings)
            if arm.trees != control.trees:
                stated = stated | {"training.trees_per_step"}
            assert differing <= stated, f"{claim.name}/{arm.name}"
            other = [(one.search, one.reads, one.trained, one.joined) for one in (arm, control)]
            assert differing or other[0] != other[1]


def test_teams_of_other_recipes_have_the_agents_of_the_demo():
    demo = Cell(TEAM, TEAM.arm("two-models"), 1, Plan()).config.agents[0]
    for name in ("single-oak", "two-roles", "single-deep"):
        for agent in Cell(TEAM, TEAM.arm(name), 1, Plan()).config.agents:
            assert (agent.sampling, agent.optimizer) == (demo.sampling, demo.optimizer)


def test_the_digest_is_of_settings_and_seed_and_of_nothing_else():
    cell = Cell(TEAM, TEAM.arm("two-models"), 1, Plan())
    same = Cell(SHAPING, replace(SHAPING.arm("two-models"), name="other", about="x"), 1, Plan())
    assert cell.digest == same.digest and cell.training_digest == same.training_digest
    others = [
        replace(cell, seed=2),
        replace(cell, plan=Plan(steps=41)),
        replace(cell, plan=Plan(problems=99)),
        Cell(SHAPING, SHAPING.arm("shaping-off"), 1, Plan()),
        Cell(SEARCH, SEARCH.arm("thompson"), 1, Plan()),
    ]
    assert len({cell.digest, *(other.digest for other in others)}) == 6
    assert others[-1].training_digest == cell.training_digest  # one training, two searches
    assert others[2].training_digest == cell.training_digest
    explicit = replace(cell.arm, settings={"credit.shaping_gamma": 0.5})  # the default
    assert replace(cell, arm=explicit).digest == cell.digest


def test_a_later_version_of_a_recipe_keeps_results_whose_settings_are_the_same():
    stored = read_result(RESULTS / "team" / "two-roles-1.json")
    cell = Cell(TEAM, TEAM.arm("two-roles"), 1, Plan(**stored.plan))
    assert stored.recipe_version < cell.config.recipe_version and cell.is_of(stored)
    assert cell.digest != stored.digest, "the version is in the digest"
    others = {**cell.arm.settings, "training.minibatches": 3}
    assert not replace(cell, arm=replace(cell.arm, settings=others)).is_of(stored)
    assert not cell.is_of(replace(stored, recipe_version=cell.config.recipe_version))


def test_a_cell_depends_on_the_weights_of_its_starters():
    for arm, starters in ("two-models", {"oak", "fern"}), ("single-deep", {"oak"}):
        cell = Cell(TEAM, TEAM.arm(arm), 1, Plan())
        files = {name: starter_directory(name) / "model.safetensors" for name in starters}
        hashes = {name: sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
        assert cell.starters() == hashes


def test_one_training_on_the_mixture_serves_every_claim_about_its_trees():
    cells = [cell for claim in CLAIMS for cell in cells_of(claim, 1, claim.plan)]
    mixed = [cell for cell in cells if cell.arm.trained and cell.arm.recipe == "demo-mixture"]
    assert {cell.claim.name for cell in mixed} == {
        "tree-samples", "underspecified", "several-details", "feedback", "feedback-underspecified",
    }  # fmt: skip
    assert {agent.name for cell in mixed for agent in cell.config.agents} == {"ash", "rowan"}
    assert len({cell.training_digest for cell in mixed}) == 1
    tree, samples, seeing = (
        Cell(claim, claim.arm(arm), 1, claim.plan).digest
        for claim, arm in (
            (OPEN, "tree-8"), (OPEN, "samples-8"), (BY_NAME["feedback-underspecified"], "feedback"),
        )
    )  # fmt: skip
    assert tree == samples == seeing  # and one evaluation


def test_every_evaluation_keeps_one_node_in_flight():
    for claim in CLAIMS:
        for cell in cells_of(claim, 1, claim.plan):
            assert cell.evaluation()["settings"]["evaluation.nodes_in_flight"] == 1


def test_starters_are_measured_as_the_team_that_is_trained():
    before, after = (BY_NAME[name] for name in ("underspecified-starters", "underspecified"))
    one, other = (Cell(claim, claim.arm("tree-8"), 1, claim.plan) for claim in (before, after))
    assert one.config.agents == other.config.agents and not one.training()
    assert {**one.evaluation(), "agents": None} == other.evaluation()


def test_cells_are_deterministic_and_seeds_give_other_problems():
    one, two = (cell.config for cell in cells_of(TEAM, 2, Plan())[:: len(TEAM.arms)])
    assert one.compute.deterministic and (one.seed, two.seed) == (1, 2)
    assert one.problems.seed != two.problems.seed


def test_cells_come_seed_by_seed():
    seeds = [cell.seed for cell in cells_of(TEAM, 3, Plan())]
    assert seeds == sorted(seeds) and seeds.count(2) == len(TEAM.arms)
    assert {cell.seed for cell in cells_of(TEAM, 5, Plan(), first=4)} == {4, 5}


def test_a_result_is_read_as_it_was_written(tmp_path):
    result = result_of(SHAPING, "shaping-off", 3, figures={"pass@1": 0.5})
    file = tmp_path / "shaping" / "shaping-off-3.json"
    write_result(file, result)
    assert read_result(file) == result
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    assert read_result(tmp_path / "none.json") is None


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"version": 9}'])
def test_a_damaged_result_is_reported_with_its_remedy(text, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(ResultDamaged, match=r"a\.json.*delete it and run"):
        read_result(file)


def test_a_result_of_another_version_is_not_read(tmp_path):
    file = tmp_path / "a.json"
    write_result(file, replace(result_of(SHAPING, "shaping-off", 1), version=2))
    with pytest.raises(ResultDamaged, match="version 2"):
        read_result(file)


def test_models_that_are_trained_apart_share_the_runs_of_their_own_arms():
    claim = BY_NAME["papers-arms"]
    joined = Cell(claim, claim.arm("trained-apart"), 3, claim.plan)
    halves = [Cell(claim, claim.arm(name), 3, claim.plan) for name in ("half-oak", "half-fern")]
    assert [one.training_digest for one in joined.trainings] == [
        one.training_digest for one in halves
    ]
    assert [one.config.training.trees_per_step for one in joined.trainings] == [6, 6]
    other = replace(claim.arm("half-oak"), settings={"training.minibatches": 8})
    moved = replace(joined.arm, joined=(other, claim.arm("half-fern")))
    assert replace(joined, arm=moved).digest != joined.digest
    assert joined.training() == replace(joined, seed=3).training() != {}
    assert models_of(joined, Workplace(Path("w"))) == {
        agent: Workplace(Path("w")).run_dir(half) / "models" / "solo"
        for agent, half in zip(("oak", "fern"), halves, strict=True)
    }
