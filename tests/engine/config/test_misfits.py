"""Tests of settings that do not go with a method: refused, or warned of, by its own module."""

import pytest

from engine.config.errors import ConfigError
from engine.config.setting_warnings import setting_warnings
from engine.recipes import load_recipe, recipe_names
from tests.helpers.plugin_packages import a_package, installed

FILTERED = {"credit.dynamic_filter": True}
ONE_SEEN = {"problems.train": 4000, "training.steps": 100, "training.trees_per_step": 40}
REFUSED = [
    ("lens", FILTERED, "credit.dynamic_filter", "credit.advantage = lens learns where every"),
    ("rl-zvp", FILTERED, "credit.dynamic_filter", "credit.advantage = rl_zvp learns from these"),
    ("rae", FILTERED, "credit.dynamic_filter", "credit.advantage = rae compares every tree with"),
    ("reinforce-pp", FILTERED, "credit.dynamic_filter", "credit.advantage = reinforce_pp compares"),
    ("flowrl", FILTERED, "credit.dynamic_filter", "loss.policy = flowrl pulls these to the ref"),
    ("pacs", {"training.compose": "shuffle"}, "training.compose", "loss.policy = pacs compares"),
    ("rl-zvp", {"training.compose": "shuffle"}, "credit.advantage", "compose = shuffle draws rows"),
    ("shuffle-r1", {"search.nodes_per_tree": 1}, "search.nodes_per_tree", "has no pair to learn"),
    ("cispo", {"loss.dual_clip": 3.0}, "loss.dual_clip", "choose gspo or mixed_policy or ppo or"),
    ("flowrl", {"loss.dual_clip": 3.0}, "loss.dual_clip", "no effect on loss.policy = flowrl"),
    ("luffy", {"loss.dual_clip": 3.0}, "loss.dual_clip", "loss.mixed_policy.clip = false"),
    ("demo", {"search.strategy": "discounted", "search.posterior": "gaussian"},
     "search.posterior", "search.strategy = discounted, which sums"),
    ("demo", {"search.strategy": "discounted", "search.agent_choice": "ucb"},
     "search.agent_choice", "that search.strategy = discounted begins with"),
    ("demo", {"search.allocator": "knapsack", "search.nodes_per_tree": 1,
              "search.nodes_in_flight": 1},
     "search.knapsack.low", "search.nodes_per_tree = 1, which each tree has on average; lower it"),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "overrides", "path", "reason"), REFUSED)
def test_settings_that_make_no_sense_with_a_method_are_refused_by_both_names(
    recipe, overrides, path, reason
):
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe, overrides)
    (problem,) = caught.value.problems
    assert problem["path"] == path and reason in problem["reason"]
    # The message names the other setting too, and one of the two has the value that is refused.
    assert problem["value"] in {*overrides.values(), 2, "rl_zvp"}


KNAPSACK = {"search.allocator": "knapsack", "problems.train": 100}
WARNED = [
    ("gdpo", FILTERED, "credit.dynamic_filter", "credit.advantage = gdpo would learn from the oth"),
    ("gdpo", {"credit.format.weight": 0.0}, "credit.advantage", "there is one part, the score"),
    ("luffy", FILTERED, "credit.dynamic_filter", "training.compose = luffy shows them a right"),
    ("luffy", {"credit.shaping_gamma": 0.5}, "credit.shaping_gamma", "whose reward is 1; set it"),
    ("luffy", {"credit.format.weight": 0.5}, "credit.format.weight", "whose reward is 1; set it"),
    ("luffy", {"loss.mixed_policy.clip": True}, "loss.mixed_policy.clip", "nothing is ever clip"),
    ("grpo", {"credit.advantage": "rl_zvp"}, "loss.policy", "does not read zero_variance, which"),
    ("pacs", {"credit.format.weight": 0.5}, "credit.format.weight", "which reads scores alone"),
    ("demo", KNAPSACK | {"search.knapsack.high": 4}, "search.knapsack.high", "never spent; raise"),
    ("demo", KNAPSACK | {"training.steps": 5}, "search.knapsack.warmup_steps", "training.steps ="),
    ("demo", {"search.allocator": "knapsack", **ONE_SEEN}, "problems.train", "allocator = knapsac"),
    ("demo", {"training.sampler": "learnability", **ONE_SEEN},
     "problems.train", "training.sampler = learnability, which goes by what earlier steps say"),
    ("tree-single", {"search.strategy": "discounted"}, "search.strategy", "there is one; choose t"),
    ("demo", {"training.extra_trees": 2, "loss.importance_correction": False},
     "loss.importance_correction", "with training.extra_trees, answers of older weights"),
    ("demo", {"training.overlap": True, "compute.generators_per_agent": 1,
              "loss.importance_correction": False},
     "loss.importance_correction", "with training.overlap, answers of older weights"),
]  # fmt: skip


@pytest.mark.parametrize(("recipe", "overrides", "path", "reason"), WARNED)
def test_a_run_that_does_less_than_its_settings_say_warns_of_it(recipe, overrides, path, reason):
    before = set(setting_warnings(load_recipe(recipe)))
    (warning,) = set(setting_warnings(load_recipe(recipe, overrides))) - before
    assert warning.path == path and reason in warning.reason


def test_no_recipe_has_a_setting_that_does_not_go_with_its_methods():
    for name in recipe_names():
        paths = {warning.path for warning in setting_warnings(load_recipe(name))}
        assert paths <= {"training.minibatches"}, name


def test_what_knows_a_problem_by_earlier_steps_is_content_where_problems_occur_again():
    seen = {**ONE_SEEN, "problems.train": 3999, "training.sampler": "learnability"}
    plain = {**seen, "training.sampler": "order"}
    assert setting_warnings(load_recipe("demo", seen)) == setting_warnings(
        load_recipe("demo", plain)
    )


MODULES = {
    "choosy": """
        from engine.config.misfits import Misfit

        def over_group(rewards_N, context):
            return rewards_N

        def misfits(config):
            if config.search.nodes_per_tree < 4:
                reason = "is too few for credit.advantage = choosy; set it to 4 or more"
                yield Misfit("search.nodes_per_tree", config.search.nodes_per_tree, reason)
            if config.seed == 1:
                yield Misfit("seed", 1, "is odd for credit.advantage = choosy", refused=False)
            if config.seed == 2:
                config.nothing
    """
}


def test_a_method_of_a_package_refuses_settings_and_warns_of_them(tmp_path):
    points = {"grove.advantages": {"choosy": "grove_toy.choosy"}}
    choosy = {"credit.advantage": "choosy"}
    with installed(a_package(tmp_path, MODULES, points)):
        with pytest.raises(ConfigError, match=r"search\.nodes_per_tree = 2: is too few for"):
            load_recipe("demo", choosy | {"search.nodes_per_tree": 2, "search.nodes_in_flight": 1})
        warnings = setting_warnings(load_recipe("demo", choosy | {"seed": 1}))
        assert "seed = 1: is odd for credit.advantage = choosy" in map(str, warnings)
        assert load_recipe("demo", choosy)
        with pytest.raises(
            ConfigError, match=r"credit\.advantage = 'choosy': its function misfits raised Attrib"
        ):
            load_recipe("demo", choosy | {"seed": 2})
