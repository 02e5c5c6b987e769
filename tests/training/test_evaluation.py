"""What a run's evaluation takes over from its settings."""

from engine.config import SelectionOrder
from engine.recipes import load_recipe
from engine.training.evaluation import without_limits


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
