"""Tests of the scientific claims: cells, budgets, statistics, the runner and the pages."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks import __main__ as command
from benchmarks.claims.budgets import mismatches, training_budget
from benchmarks.claims.catalogue import BY_NAME, CLAIMS
from benchmarks.claims.cell import Cell, ResultDamaged, cells_of, read_result, write_result
from benchmarks.claims.claim import Arm, Plan
from benchmarks.claims.measurement import evaluation_figures
from benchmarks.claims.record import claim_record
from benchmarks.claims.runner import run_cells
from benchmarks.claims.stages import StageFailed, Workplace
from benchmarks.claims.statistics import Outcome, Verdict, compared, mean_interval, overall, reaches
from docs.generate import science
from engine.events.log import read_all
from engine.events.vocabulary import Event
from engine.problems.paired import paired_student
from engine.recipes import recipe_names
from tests.benchmarks.claims import BUDGET, result_of, write_arms
from tests.helpers.waiting import eventually

TEAM, SHAPING, SAMPLES = BY_NAME["team"], BY_NAME["shaping"], BY_NAME["tree-samples"]
OPEN, SEARCH = BY_NAME["underspecified"], BY_NAME["thompson-search"]
TINY = Plan(steps=2, trees=2, problems=2, samples=2)
WORKED = {1: 0.50, 2: 0.55, 3: 0.60}
"""Control of the worked numbers."""


def flat(data, prefix=""):
    """Paths and values of nested settings."""
    if isinstance(data, dict):
        return {k: v for key, one in data.items() for k, v in flat(one, f"{prefix}{key}.").items()}
    return {prefix.rstrip("."): data}


# --- Statistics


def test_the_interval_is_that_of_student():
    interval = paired_student([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])
    half = 4.302652729911275 * 0.1 / 3**0.5  # t(2) at 0.975, sd 0.1
    assert interval.difference == pytest.approx(0.2)
    assert (interval.low, interval.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert paired_student([1, 2, 4], [2, 3, 5]).low == pytest.approx(1)  # no spread
    for a, b in (([1.0], [2.0]), ([1.0, 2.0], [1.0])):
        with pytest.raises(ValueError, match="give equally many, two or more"):
            paired_student(a, b)


@pytest.mark.parametrize(
    ("arm", "verdict", "outcome"),
    [
        ({1: 0.60, 2: 0.66, 3: 0.70}, Verdict.BETTER, Outcome.OPPOSITE),
        ({1: 0.40, 2: 0.44, 3: 0.50}, Verdict.WORSE, Outcome.SEEN),
        ({1: 0.40, 2: 0.66, 3: 0.50}, Verdict.NO_DIFFERENCE, Outcome.NOT_SEEN),
        ({1: 0.60, 2: 0.44, 3: 0.70}, Verdict.NO_DIFFERENCE, Outcome.NOT_SEEN),
        ({1: 0.40}, Verdict.UNKNOWN, Outcome.UNKNOWN),
        ({4: 0.4, 5: 0.4, 6: 0.4}, Verdict.UNKNOWN, Outcome.UNKNOWN),  # no seed in common
        ({1: None, 2: 0.44, 3: None}, Verdict.UNKNOWN, Outcome.UNKNOWN),
    ],
)
def test_a_verdict_needs_an_interval_that_excludes_zero(arm, verdict, outcome):
    comparison = compared(WORKED, arm)
    assert comparison.verdict is verdict
    assert comparison.outcome("lower") is outcome


def test_differences_are_paired_by_seed_and_the_detectable_one_is_half_the_interval():
    spread = {1: 0.1, 2: 0.5, 3: 0.9}
    comparison = compared(spread, {3: 0.95, 1: 0.14, 2: 0.56})  # far apart, but not by seed
    assert comparison.interval.difference == pytest.approx(0.05)
    assert comparison.detectable == pytest.approx(4.302652729911275 * 0.01 / 3**0.5)
    assert comparison.verdict is Verdict.BETTER


def test_the_mean_of_an_arm_has_an_interval_from_two_seeds_on():
    assert mean_interval({1: 0.4, 2: 0.6}) == pytest.approx((0.5, 12.706204736432095 * 0.1))
    assert mean_interval({1: 0.4, 2: None}) == (0.4, None)
    assert mean_interval({}) == (None, None)


def test_a_statement_about_several_arms_is_seen_only_if_each_is():
    assert overall([Outcome.SEEN, Outcome.SEEN]) is Outcome.SEEN
    assert overall([Outcome.SEEN, Outcome.NOT_SEEN]) is Outcome.NOT_SEEN
    assert overall([Outcome.UNKNOWN, Outcome.SEEN]) is Outcome.UNKNOWN
    assert overall([Outcome.UNKNOWN, Outcome.NOT_SEEN]) is Outcome.NOT_SEEN
    assert overall([Outcome.OPPOSITE, Outcome.UNKNOWN, Outcome.SEEN]) is Outcome.OPPOSITE
    assert overall([]) is Outcome.UNKNOWN


# --- Claims and cells


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
            assert differing <= stated, f"{claim.name}/{arm.name}"
            assert differing or arm.search != control.search or arm.reads != control.reads


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


def test_one_training_on_the_mixture_serves_every_claim_about_its_trees():
    cells = [cell for claim in CLAIMS for cell in cells_of(claim, 1, claim.plan)]
    mixed = [cell for cell in cells if cell.arm.trained and cell.arm.recipe == "demo-mixture"]
    assert {cell.claim.name for cell in mixed} == {
        "tree-samples", "underspecified", "feedback", "feedback-underspecified",
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


# --- Budgets


def node(seq, tree, number, agent, depth, tokens, score=1.0):
    draws = {"agent": agent, "parent": 0, "depth": depth, "draws": {}}
    yield Event(seq, 0.0, "node.open", tree, number, draws)
    yield Event(seq + 1, 0.0, "node.close", tree, number, {"score": score, "tokens": tokens})


def update(seq, agent, trees, nodes, shared=()):
    payload = {"agent": agent, "step": 1, "nodes": nodes, "trees": trees, "shared_with": [*shared]}
    return Event(seq, 0.0, "agent.update", None, None, payload)


def log_of_a_step():
    yield Event(1, 0.0, "tree.open", 1, None, {"step": 1})
    yield Event(2, 0.0, "tree.open", 2, None, {"step": 1})
    yield from node(3, 1, 1, "oak", 1, 10)
    yield from node(5, 1, 2, "fern", 2, 20)
    yield from node(7, 1, 3, "oak", 2, 40, score=None)  # failed technically: not learned from
    yield from node(9, 2, 1, "oak", 1, 80)  # of a filtered tree
    end = {"step": 1, "training_seconds": 4.5, "filtered_trees": 1}
    yield Event(13, 0.0, "step.end", None, None, end)


def test_learned_tokens_are_those_of_the_nodes_in_updates():
    events = [*log_of_a_step(), update(11, "oak", [1], 1), update(12, "fern", [1], 1)]
    budget = training_budget(events)
    assert (budget.nodes, budget.refined, budget.failed, budget.filtered_trees) == (4, 2, 1, 1)
    assert (budget.learned_nodes, budget.learned_tokens) == (2, 30)
    assert (budget.steps, budget.seconds) == (1, 4.5)


def test_agents_that_share_weights_learn_from_each_other_s_nodes():
    events = [*log_of_a_step(), update(11, "oak", [1], 2, shared=["fern"])]
    assert training_budget(events).learned_tokens == 30


def test_nodes_that_a_resume_repeats_count_once():
    again = [replace_seq(event, event.seq + 20) for event in log_of_a_step()]
    resumed = Event(20, 0.0, "run.resumed", None, None, {"step": 0})
    assert training_budget([*log_of_a_step(), resumed, *again]).nodes == 4


def replace_seq(event, seq):
    tree = None if event.tree is None else event.tree + 20
    return Event(seq, event.time, event.kind, tree, event.node, event.payload)


@pytest.mark.parametrize(
    ("arm", "budget", "expected"),
    [
        ("single-oak", {}, []),
        ("single-oak", {"learned_tokens": 27500, "parameters": 508416}, []),  # 8 %; not compared
        ("two-roles", {"learned_tokens": 15000}, ["learned tokens: 15,000 and 30,000, 0.50 times"]),
        ("single-oak", {"nodes": 5119}, ["nodes: 5,119 and 5,120, 1.00 times"]),
        ("single-deep", {"parameters": 1_074_176}, []),
        ("single-deep", {"parameters": 508416}, ["parameters: 508,416 and 985,760, 0.52 times"]),
        ("single-oak", {"tree_answers": 400}, ["tree answers: 400 and 800, 0.50 times"]),
    ],
)  # fmt: skip
def test_a_budget_that_differs_is_reported(arm, budget, expected):
    assert mismatches(TEAM, TEAM.arm(arm), BUDGET | budget, BUDGET) == expected


def test_answers_are_compared_under_the_names_that_the_arms_read():
    fewer = BUDGET | {"samples_answers": 700}
    said = mismatches(SAMPLES, SAMPLES.arm("tree-8"), BUDGET, fewer)
    assert said == ["tree answers: 800 and 700, 1.14 times"]


# --- Records and pages


def test_a_claim_that_is_not_seen_is_written_as_not_seen(tmp_path):
    values = {"two-models": [0.50, 0.55, 0.60], "shaping-off": [0.40, 0.66, 0.50]}
    write_arms(tmp_path, SHAPING, values)
    pages = science.pages(tmp_path)
    page = pages["docs/science/shaping.md"]
    assert "## Not seen\n" in page
    assert "no difference seen, −0.030 (−0.331 to +0.271) over 3 seeds; a mean" in page
    assert "difference of 0.301 or more would have been seen" in page
    assert "**Too few seeds.** A comparison has 3 of the 10 seeds" in page
    assert "python -m benchmarks claims shaping --seeds 3\n" in page
    assert "All budgets that the claim holds equal are equal" in page
    assert "| Not seen, too few seeds | 3 |" in pages["docs/science/index.md"]
    assert "**Not measured yet.**" in pages["docs/science/team.md"]


def test_a_claim_that_is_seen_on_enough_seeds_is_not_marked(tmp_path):
    control = [0.5 + 0.01 * seed for seed in range(10)]
    off = [value - 0.1 - 0.001 * (n % 2) for n, value in enumerate(control)]
    write_arms(tmp_path, SHAPING, {"two-models": control, "shaping-off": off})
    pages = science.pages(tmp_path)
    assert "## Seen\n" in pages["docs/science/shaping.md"]
    assert "worse, −0.10" in pages["docs/science/shaping.md"]
    assert "Too few" not in pages["docs/science/shaping.md"]
    assert "| Seen | 10 |" in pages["docs/science/index.md"]


def test_the_opposite_of_a_claim_is_named(tmp_path):
    values = {"two-models": [0.50, 0.55, 0.60], "shaping-off": [0.60, 0.66, 0.70]}
    write_arms(tmp_path, SHAPING, values)
    assert (
        "## Not seen; for an arm the opposite is seen"
        in science.pages(tmp_path)["docs/science/shaping.md"]
    )


def test_arms_with_one_seed_are_not_decided(tmp_path):
    values = {"two-models": [0.8, 0.8], "single-oak": [0.7, 0.9], "two-roles": [0.7]}
    write_arms(tmp_path, TEAM, values)
    pages = science.pages(tmp_path)
    page = pages["docs/science/team.md"]
    assert "- two-roles against two-models, Pass@1(tree): not decided, seeds in common: 1." in page
    assert "## Not seen\n" in page  # single-oak is no worse, so not all arms can be
    assert "A comparison has 0 to 2 of the 10 seeds" in page
    assert "| Not seen, too few seeds | 0 to 2 |" in pages["docs/science/index.md"]


def write_sizes(folder, tree):
    samples = [0.5 + 0.01 * seed for seed in range(10)]
    small = [one + tree + 0.01 * (n % 2) for n, one in enumerate(samples)]
    large = [one - 0.2 for one in samples]
    values = {"samples-8": samples, "tree-8": small, "samples-60": samples, "tree-60": large}
    write_arms(folder, OPEN, values)
    return science.pages(folder)["docs/science/underspecified.md"]


def test_larger_trees_are_shown_and_do_not_decide(tmp_path):
    page = write_sizes(tmp_path, tree=0.15)
    assert "## Seen\n" in page and "Too few" not in page
    assert "tree-60 against samples-60, Pass@1 of the selected answer: worse" in page
    assert page.count("It does not decide.") == 2


@pytest.mark.parametrize(("tree", "said"), [(0.15, "reached"), (0.05, "missed")])
def test_the_page_says_whether_the_goal_is_reached(tree, said, tmp_path):
    page = write_sizes(tmp_path, tree)
    assert f"difference of at least +0.100, with an interval that excludes 0, is {said}." in page


def test_a_goal_above_zero_needs_a_difference_that_is_seen():
    clear = compared(WORKED, {1: 0.60, 2: 0.66, 3: 0.70})
    wide = compared(WORKED, {1: 0.40, 2: 1.0, 3: 0.70})
    assert [reaches(clear, goal) for goal in (0.1, 0.2, -0.01)] == [True, False, True]
    assert [reaches(wide, goal) for goal in (0.1, -0.01)] == [False, True]
    assert not reaches(compared(WORKED, {}), -0.01)


def test_figures_by_readings_are_means_over_the_problems_with_so_many():
    rows = [("underspecified-1-7-3-4", 1.0, 0.0), ("underspecified-1-7-5-4", 0.0, 0.0),
            ("underspecified-1-7-9-2", 1.0, 1.0), ("generated-1-7-4", 0.0, 1.0)]  # fmt: skip
    problems = [
        {"id": name, "values": {"tree/pass@1": tree, "samples/pass@1": samples}}
        for name, tree, samples in rows
    ]
    figures = evaluation_figures({"figures": {"pass@1/ash": {"value": 0.5}}, "problems": problems})
    assert figures["tree/pass@1/4-readings"] == 0.5 and figures["samples/pass@1/4-readings"] == 0.0
    assert (
        figures["tree/pass@1/2-readings"] == 1.0
        and len([k for k in figures if "readings" in k]) == 4
    )


def test_a_claim_on_starters_says_that_nothing_was_trained(tmp_path):
    claim = BY_NAME["tree-samples-starters"]
    write_arms(tmp_path, claim, {"samples-8": [0.5, 0.6], "tree-8": [0.5, 0.6]})
    page = science.pages(tmp_path)["docs/science/tree-samples-starters.md"]
    assert "| each cell | no training, and 100 problems to evaluate" in page


def test_unequal_budgets_are_on_the_page(tmp_path):
    values = {"two-models": [0.5, 0.6], "shaping-off": [0.5, 0.6]}
    write_arms(tmp_path, SHAPING, values, **{"shaping-off": {"learned_tokens": 20000}})
    page = science.pages(tmp_path)["docs/science/shaping.md"]
    assert "- shaping-off, seed 2: learned tokens: 20,000 and 30,000, 0.67 times" in page
    assert "All budgets that the claim" not in page


def test_results_of_other_settings_or_sizes_are_left_out_and_named(tmp_path):
    values = {"two-models": [0.5, 0.6], "shaping-off": [0.5, 0.6]}
    write_arms(tmp_path, SHAPING, values)
    old = replace(result_of(SHAPING, "shaping-off", 3), digest="0" * 64)
    write_result(tmp_path / "shaping" / "shaping-off-3.json", old)
    small = result_of(SHAPING, "shaping-off", 4, Plan(steps=2))
    write_result(tmp_path / "shaping" / "shaping-off-4.json", small)
    record = claim_record(SHAPING, tmp_path)
    assert record.left_out == ["shaping-off-3", "shaping-off-4"]
    assert sorted(record.results["shaping-off"]) == [1, 2]
    page = science.pages(tmp_path)["docs/science/shaping.md"]
    assert "results of other settings or sizes: shaping-off-3, shaping-off-4" in page


def test_the_page_remakes_cells_of_another_size(tmp_path):
    values = {"two-models": [0.5, 0.6], "shaping-off": [0.5, 0.6]}
    write_arms(tmp_path, SHAPING, values, Plan(steps=5))
    page = science.pages(tmp_path)["docs/science/shaping.md"]
    assert "benchmarks claims shaping --seeds 2 --steps 5\n" in page


def test_stored_results_are_those_of_the_current_claims():
    for claim in CLAIMS:
        assert not claim_record(claim, science.FOLDER).left_out, claim.name


# --- The command


def test_the_claims_are_listed(capsys):
    assert command.main(["claims", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(claim.statement in listed for claim in CLAIMS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nothing"], "no such claim; choose from team"), (["team", "--arms", "x"], "no such arm")],
)
def test_an_unknown_claim_or_arm_is_refused(arguments, said, tmp_path, capsys):
    options = ["--work", str(tmp_path / "w"), "--results", str(tmp_path / "r")]
    assert command.main(["claims", *arguments, *options]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.json"))


def test_a_failed_cell_names_its_cause_and_the_others_go_on(tmp_path):
    impossible = Arm("impossible", "", settings={"agents.oak.model": "deeper:oak:1"})
    claim = replace(SHAPING, arms=(*SHAPING.arms, impossible))
    present = result_of(claim, "two-models", 1, TINY)
    write_result(tmp_path / "other" / "two-models-1.json", present)
    cells = [Cell(claim, claim.arm(name), 1, TINY) for name in ("impossible", "two-models")]
    lines = []
    done = run_cells(cells, tmp_path, Workplace(tmp_path / "work"), lines.append)
    assert list(done.failed) == ["shaping/impossible-1"]
    assert "layers = 1: the starter oak has 2" in done.failed["shaping/impossible-1"]
    assert done.copied == ["shaping/two-models-1"] and not done.measured
    assert read_result(cells[1].file(tmp_path)) == present
    assert "2 cells: 0 present, 2 to do" in lines[0] and "min left" in lines[-1]
    assert not cells[0].file(tmp_path).exists()


def test_a_stage_that_exceeds_its_limit_fails(tmp_path):
    cell = Cell(SAMPLES, BY_NAME["tree-samples-starters"].arm("tree-8"), 1, TINY)
    done = run_cells([cell], tmp_path, Workplace(tmp_path, minutes=0.001), lambda line: None)
    assert done.failed == {cell.name: "evaluation: it took more than 0.001 minutes (--minutes)"}
    assert StageFailed.__doc__


def claims(folder, *arguments):
    options = ["--work", str(folder / "work"), "--results", str(folder / "results"), "--json"]
    size = ["--trees", "2", "--problems", "2"]
    return [sys.executable, "-m", "benchmarks", "claims", *arguments, *size, *options]


def run(folder, *arguments):
    done = subprocess.run(claims(folder, *arguments), capture_output=True, text=True, timeout=500)
    return done.returncode, json.loads(done.stdout.splitlines()[-1])["figures"], done.stderr


@pytest.mark.slow
def test_a_tiny_claim_is_measured_once_and_its_failures_show(tmp_path):
    arms = ["search-switches", "--arms", "feedback", "reward-model", "--steps", "1", "--seeds", "2"]
    code, figures, progress = run(tmp_path, *arms)
    assert code == 1, progress
    failed = figures.pop("failed")
    assert figures == {"present": 0, "measured": 2, "copied": 0}
    assert set(failed) == {"search-switches/reward-model-1", "search-switches/reward-model-2"}
    assert "train the run for longer" in failed["search-switches/reward-model-1"]
    results = tmp_path / "results"
    first = read_result(results / "search-switches" / "feedback-1.json")
    assert first.figures["tree/pass@1"] is not None and first.budget["nodes"] == 16
    assert first.budget["tree_answers"] == 120 and first.budget["learned_tokens"] > 0
    assert first.machine and first.grove and len(first.recipe_sha256) == 64
    again = ["search-switches", "--arms", "feedback", "--steps", "1", "--seeds", "2"]
    assert run(tmp_path, *again)[:2] == (0, {"present": 2, "measured": 0, "copied": 0})
    file = results / "search-switches" / "feedback-2.json"
    write_result(file, replace(read_result(file), digest="0" * 64))
    code, figures, progress = run(tmp_path, *again)
    assert (code, figures) == (0, {"present": 1, "measured": 1, "copied": 0})
    assert "feedback-2: its result is of other settings; measuring it again" in progress
    assert read_result(file).digest != "0" * 64


LONGER = ("shaping", "--arms", "shaping-off", "--steps", "12", "--seeds", "1")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    code, _, progress = run(folder, *LONGER)
    assert code == 0, progress
    return read_result(folder / "results" / "shaping" / "shaping-off-1.json")


def steps_of(folder):
    logs = list(folder.glob("work/train-*"))
    return sum(event.kind == "step.end" for event in read_all(logs[0])) if logs else 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_runner_goes_on_and_gets_the_same_figures(number, uninterrupted, tmp_path):
    runner = subprocess.Popen(claims(tmp_path, *LONGER), stderr=subprocess.DEVNULL)
    eventually(lambda: steps_of(tmp_path) > 1, "two steps", seconds=240)
    os.kill(runner.pid, number)
    assert runner.wait(timeout=120) == (130 if number == signal.SIGTERM else -number)
    assert not (tmp_path / "results" / "shaping").exists()
    code, _, progress = run(tmp_path, *LONGER)
    assert code == 0, progress
    result = read_result(tmp_path / "results" / "shaping" / "shaping-off-1.json")
    assert {**result.figures, "seconds": 0} == {**uninterrupted.figures, "seconds": 0}
    assert result.budget == uninterrupted.budget and result.digest == uninterrupted.digest
    assert result.resumed == 1 or number == signal.SIGKILL  # an orphan may finish by itself
