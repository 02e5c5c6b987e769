"""Tests of a run's evaluation: settings that it takes from the run, and its progress reports."""

from engine.config.thompson import SelectionOrder
from engine.evaluation.measurement import measure
from engine.problems.source import load_problem_set
from engine.recipes import load_recipe
from engine.training.evaluation import TEST, Evaluator, TeamBench, without_limits
from engine.training.evaluation_wait import EvaluationWait, program_count
from tests.engine.training.in_process import a_trainer
from tests.helpers.policies import tiny_config, tiny_policy


def test_a_team_of_flat_groups_is_measured_by_a_search_like_any_other():
    search = load_recipe(
        "grpo",
        {"search.tokens_per_tree": 9, "search.rho": 0.97, "search.selection_order": "node_first"},
    ).search
    assert search.max_depth == 1
    measured = without_limits(search)
    assert (measured.max_depth, measured.tokens_per_tree) == (None, None)
    assert (measured.rho, measured.selection_order) == (0.97, SelectionOrder.NODE_FIRST)
    assert without_limits(load_recipe("demo").search) == load_recipe("demo").search


def test_an_evaluation_counts_the_programs_that_it_judges(tmp_path, ray_address):
    models = [tiny_policy(tmp_path / name, seed) for seed, name in enumerate("ab")]
    config = tiny_config(
        *models,
        problems={"seed": 3, "train": 8, "validation": 0, "test": 2},
        evaluation={"tree_nodes": 3, "samples_per_problem": 2},
    )
    reports = []
    with a_trainer(tmp_path / "run", config, ray_address) as trainer:
        problems = load_problem_set(config.problems).test
        total = program_count(config.evaluation, 2, len(problems), search=True)
        wait = EvaluationWait(reports.append, "final test", total)
        stream = (TEST, 0)
        bench = TeamBench(trainer.team, trainer.should_stop, False, stream, wait.add)
        measure(bench, config, problems, [1], search=True)
        evaluator = Evaluator(trainer.team, config, trainer.should_stop, reports.append)
        evaluator.run(3, TEST, problems, search=True)
    # Two samples of two agents, three nodes, and as many samples, rounded up to two of each.
    assert wait.done == total == 2 * (2 * 2 + 3 + 4)
    first, *_, last = reports
    assert (first.name, first.done, first.total) == ("final test, trained weights", 0, total)
    assert {one.name for one in reports[:-1]} == {first.name} and last.name == ""
