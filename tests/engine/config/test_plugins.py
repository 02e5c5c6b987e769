"""Tests of methods of other packages: found by entry points, selected, refused by name."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.__main__ import main
from engine.config.credit import CreditConfig
from engine.config.errors import ConfigError
from engine.config.loss import LossConfig
from engine.config.methods import REGISTRIES, figures_of, registry
from engine.config.schema import RunConfig, parse_config
from engine.config.search import SearchConfig
from engine.config.training import TrainingConfig
from engine.credit import ADVANTAGES
from engine.credit.assign import TreeRecord, assign_credit
from engine.curriculum import SAMPLERS
from engine.curriculum.sampler import Draws
from engine.evaluation.gauges.fold import replayed
from engine.events.vocabulary import Verdict
from engine.losses.terms import Rows
from engine.losses.total import count_units, total_loss
from engine.memory.protocol import SeenTree
from engine.problems.errors import DatasetError
from engine.problems.load import format_names, load_dataset
from engine.recipes import load_recipe
from engine.rollout.forest import training_score
from engine.sandbox.host.verify import Verification
from engine.search.allocators import allocated
from engine.search.strategies import planted
from tests.helpers.plugin_packages import EXAMPLE, a_package, installed, trained
from tests.helpers.policies import tiny_config, tiny_policy
from tests.helpers.sample_log import Sample, sample_events
from webapp.experiments.run_settings.settings_schema import setting_groups

OVERRIDES = {
    "credit.advantage": "scaled",
    "credit.scaled.scale": 3.0,
    "credit.score": "partial",
    "loss.policy": "reinforce",
}


@pytest.fixture
def example():
    with installed(EXAMPLE):
        yield


def test_the_example_adds_a_method_to_every_registry(example):
    assert {one.kind: sorted(one.methods.sound()) for one in REGISTRIES} == {
        "advantages": ["scaled", "smoothed"], "losses": ["baseline", "reinforce"],
        "rewards": ["brief", "partial"], "formats": ["example_rows"],
        "strategies": ["best_first"], "allocators": ["alternating"],
        "samplers": ["unsolved"], "environments": ["new_letters"], "composers": ["again"],
        "gauges": ["answer_length"],
    }  # fmt: skip


def test_methods_of_a_package_are_selected_like_the_engine_s_own(example):
    config = load_recipe("demo", OVERRIDES)
    assert config.credit.options("advantage").scale == 3.0
    assert config.loss.options("policy").floor == 0.1, "its default"
    record = config.model_dump(mode="json")
    assert (record["credit"]["scaled"], record["loss"]["reinforce"]) == (
        {"scale": 3.0}, {"floor": 0.1},
    )  # fmt: skip
    assert parse_config(record) == config
    fields = {one.path: one for group in setting_groups(config) for one in group.settings}
    assert "scaled" in fields["credit.advantage"].choices
    assert fields["credit.scaled.scale"].range == "above 0 to 100"
    schema = RunConfig.model_json_schema()["$defs"]["LossConfig"]["properties"]
    assert "reinforce" in schema["policy"]["enum"] and "floor" in schema["reinforce"]["properties"]
    with pytest.raises(ConfigError, match=r"credit\.scaled\.scale = 0"):
        load_recipe("demo", {"credit.scaled.scale": 0})


def test_without_its_package_a_run_is_refused_by_name_and_others_do_not_know_it():
    for path, value in OVERRIDES.items():
        with pytest.raises(ConfigError, match=re.escape(path.removesuffix(".scale"))):
            load_recipe("demo", {path: value})
    plain = load_recipe("demo").model_dump(mode="json")
    with installed(EXAMPLE):
        assert load_recipe("demo").model_dump(mode="json") == plain


def test_credit_is_that_of_the_package_s_advantage(example):
    tree = TreeRecord([1, 2, 3], [0, 0, 0], ["oak"] * 3, [1.0, 0.0, 0.0], [4, 4, 4])
    config = CreditConfig(advantage="scaled", shaping_gamma=0.0, scaled={"scale": 3.0})
    assert assign_credit(tree, config, 8).advantages_N == pytest.approx([2.0, -1.0, -1.0])
    repaired = replace(tree, parents=[0, 0, 2])
    assert assign_credit(repaired, config, 8).advantages_N == pytest.approx([2.0, -1.0, -1 / 3])


def test_an_advantage_of_a_package_remembers_earlier_trees_and_refuses_what_hides_them(example):
    config = CreditConfig(advantage="smoothed", shaping_gamma=0.0, smoothed={"decay": 0.5})
    tree = TreeRecord([1, 2], [0, 0], ["oak"] * 2, [1.0, 0.0], [4, 4])
    memory = ADVANTAGES["smoothed"].memory(config)
    first = assign_credit(tree, config, 8, memory)
    resumed = ADVANTAGES["smoothed"].memory(config)
    resumed.restore(json.loads(json.dumps(memory.state())))
    second = assign_credit(tree, config, 8, resumed)
    assert first.advantages_N.tolist() == [1.0, 0.0]
    assert second.advantages_N.tolist() == [0.75, -0.25]
    with pytest.raises(ConfigError, match=r"credit\.dynamic_filter = True: .* = smoothed compares"):
        load_recipe("demo", {"credit.advantage": "smoothed"})


def test_a_loss_of_a_package_learns_and_reports_its_figure(example):
    logprobs = torch.tensor([[-0.1, -4.0, -9.0], [-0.2, -3.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    rows = Rows(logprobs, logprobs, torch.tensor([[2.0], [-1.0]]).expand(2, 3), mask)
    config = LossConfig(policy="reinforce", kl_coefficient=0)
    learned = logprobs.clone().requires_grad_()
    result = total_loss(learned, rows, count_units([mask], config), config)
    result.loss.backward()
    assert result.policy.item() == pytest.approx((2 * 13.1 - 3.2) / 5)
    assert learned.grad.tolist() == [pytest.approx([-0.4] * 3), pytest.approx([0.2, 0.2, 0.0])]
    assert float(result.figures["unlikely"]) == pytest.approx(3 / 5)
    figures = figures_of({"loss": {"policy": "reinforce"}, "credit": {"advantage": "nothing"}})
    assert figures == {
        "unlikely": {"title": "Tokens below the floor", "unit": "share", "section": "Learning"}
    }


def test_a_loss_of_a_package_learns_with_its_head(example):
    logprobs = torch.tensor([[-0.1, -4.0], [-0.2, 0.0]], dtype=torch.float64)
    mask, values = torch.tensor([[1, 1], [1, 0]]), torch.tensor([[0.5, 0.0], [1.0, 9.0]])
    heads = {"value": values.double().requires_grad_()}
    advantages = torch.tensor([[2.0], [-1.0]]).expand(2, 2)
    rows = Rows(logprobs, logprobs, advantages, mask, heads=heads)
    config = LossConfig(policy="baseline", baseline={"cost": 2.0}, kl_coefficient=0)
    learned = logprobs.clone().requires_grad_()
    result = total_loss(learned, rows, count_units([mask], config), config)
    policy, errors = 1.5 * 0.1 + 2 * 4.0 - 2 * 0.2, 1.5**2 + 2**2 + 2**2
    assert result.policy.item() == pytest.approx((policy + 2 * errors) / 3)
    assert float(result.figures["value_error"]) == pytest.approx(errors / 3)
    own, of_head = torch.autograd.grad(result.loss, [learned, heads["value"]])
    assert own.tolist() == [pytest.approx([-0.5, -2 / 3]), pytest.approx([2 / 3, 0])]
    assert of_head.tolist() == [pytest.approx([-2.0, -8 / 3]), pytest.approx([8 / 3, 0])]
    assert load_recipe("demo", {"loss.policy": "baseline", "loss.baseline.head_learning_rate": 0.1})
    with pytest.raises(ValueError, match="policy = baseline needs value; give"):
        total_loss(learned, replace(rows, heads={}), count_units([mask], config), config)


def test_a_reward_of_a_package_scores_nodes(example):
    judge = training_score(CreditConfig(score="partial"))
    outcome = Verification(Verdict.WRONG_ANSWER, 0.5, (None,), 1, False)
    assert judge(outcome) == 0.25
    assert judge(Verification(Verdict.PASSED, 1.0, (None,), 1, True)) == 1.0
    assert judge(Verification(Verdict.SANDBOX_FAILURE, 0.0, (None,), 0, False)) is None


def test_a_part_of_a_package_is_added_to_the_reward(example):
    config = load_recipe("demo", {"credit.brief.weight": -0.5, "credit.brief.free": 2}).credit
    programs = ["a\nb\nc\nd", "a\nb", ""]
    tree = TreeRecord(
        [1, 2, 3], [0, 0, 0], ["oak"] * 3, [1.0, 0.0, 0.0], [4, 4, 4], {"programs": programs}
    )
    credit = assign_credit(tree, config, 8)
    assert credit.terms["brief"].tolist() == [-1.0, 0.0, 0.0]
    assert credit.shaped_N == pytest.approx(sum(credit.terms.values()))
    with pytest.raises(ConfigError, match=r"credit\.score = 'brief': is a part"):
        load_recipe("demo", {"credit.score": "brief"})


def test_a_strategy_of_a_package_grows_a_tree(example):
    search = SearchConfig(strategy="best_first", nodes_per_tree=4)
    tree = planted(("oak", "elm"), search, np.random.default_rng(0))
    for score in (0.0, 0.5, 0.25, 0.0):
        tree.close(tree.open(tree.select()), score)
    assert [node.parent for node in tree.nodes] == [None, 0, 1, 2, 2]


def test_an_allocator_of_a_package_divides_a_step_s_nodes(example):
    search = SearchConfig(allocator="alternating", nodes_per_tree=8)
    assert allocated([0, 1, 2, 3], search) == [8, 4, 8, 4]


def test_a_sampler_of_a_package_names_problems_and_remembers(example):
    training = TrainingConfig(sampler="unsolved")
    draws = Draws(SAMPLERS["unsolved"](3, 0, training))
    assert draws.take(0, 4) == [0, 1, 2, 0]
    tree = SeenTree(problem=1, nodes=[1], parents=[0], agents=["oak"], scores=[1.0], filtered=False)
    draws.observe(1, [tree])
    assert draws.take(4, 4) == [0, 2, 0, 2]
    resumed = Draws(SAMPLERS["unsolved"](3, 0, training))
    resumed.restore(json.loads(json.dumps(draws.state())))
    assert resumed.take(8, 3) == draws.take(8, 3)


def test_a_gauge_of_a_package_is_charted_with_its_title(example):
    config = load_recipe("demo", {"evaluation.gauges": ["answer_length"]})
    assert figures_of(config.model_dump(mode="json"))["answer_length.tokens"] == {
        "title": "Length of right and of wrong answers", "unit": "tokens", "section": "Learning",
    }  # fmt: skip
    events = list(sample_events(Sample(steps=2, trees=3)))
    first, second = (one.numbers for one in replayed(events, config.evaluation))
    assert set(first) == {"answer_length.tokens.right", "answer_length.tokens.wrong"}
    tokens = {}
    for event in events:
        if event.kind == "node.close" and event.payload["score"] is not None:
            key = event.payload["policy_version"], event.payload["score"] == 1.0
            tokens.setdefault(key, []).append(event.payload["tokens"])
    assert first["answer_length.tokens.right"] == pytest.approx(np.mean(tokens[0, True]))
    smoothed = 0.8 * np.mean(tokens[0, True]) + 0.2 * np.mean(tokens[1, True])
    assert second["answer_length.tokens.right"] == pytest.approx(smoothed)


def test_a_format_of_a_package_reads_its_rows(example, tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [
        {"name": f"p{i}", "task": f"Give {i}.", "given": "a", "expected": str(i)} for i in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("auto", "example_rows"):
        loaded = load_dataset(path, name)
        assert (loaded.format, [one.id for one in loaded.problems]) == (
            "example_rows", ["p0", "p1", "p2"],
        )  # fmt: skip
    assert format_names()[-1] == "example_rows"


def test_the_engine_lists_plug_ins_with_version_and_origin(example, capsys):
    assert main(["plugins", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["plugins"]
    assert {one["name"] for one in found} == {
        "scaled", "smoothed", "baseline", "reinforce", "brief", "partial", "example_rows",
        "best_first", "alternating", "unsolved", "new_letters", "again", "answer_length",
    }  # fmt: skip
    for one in found:
        assert (one["package"], one["version"]) == ("grove-example", "0.1")
        assert Path(one["folder"]) == EXAMPLE and one["error"] == ""
    assert main(["plugins"]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("advantages scaled = grove_example.scaled  grove-example 0.1 in /")


ADVANTAGE = "def over_group(rewards_N, context): return rewards_N"
MODULES = {
    "sound": ADVANTAGE,
    "missing": "import no_such_library",
    "hookless": "over_batch = print",
    "texts": f"""
        from engine.config.base import Settings
        {ADVANTAGE}
        class Options(Settings):
            "Options."
            path: str = "/etc/passwd"
            "A path."
    """,
    "helpless": f"""
        from engine.config.base import Settings
        {ADVANTAGE}
        class Options(Settings):
            weight: float = 1.0
    """,
    "titled": f"FIGURES = {{'a': 'A title'}}\n{ADVANTAGE}\ndef figures(*_): return {{}}",
    "unread": "FIELDS = ('x',)\ndef problem(fields): return None\n",
    "raising": "FIELDS = ('x',)\ndef recognises(row): return 'x' in row and 1 / 0\n"
    "def problem(fields): 1 / 0\n",
    "untitled": "def numbers(step, context): return {}",
    "high": "def score(outcome, options): return 2.0",
}
POINTS = {
    "grove.advantages": {
        **{name: f"grove_toy.{name}" for name in ("sound", "missing", "hookless", "texts",
                                                  "helpless", "titled")},
        "grpo": "grove_toy.sound", "Upper": "grove_toy.sound", "options": "grove_toy.sound",
    },
    "grove.losses": {"aimless": "grove_toy.sound"},
    "grove.rewards": {"scoreless": "grove_toy.sound", "high": "grove_toy.high"},
    "grove.formats": {"unread": "grove_toy.unread", "raising": "grove_toy.raising"},
    "grove.environments": {"nowhere": "grove_toy.sound"},
    "grove.gauges": {"still": "grove_toy.sound", "untitled": "grove_toy.untitled"},
    "grove.optimisers": {"any": "grove_toy.sound"},
}  # fmt: skip
FAULTS = {
    "missing": "cannot be imported (ModuleNotFoundError: No module named 'no_such_library')",
    "hookless": "has no function over_group",
    "texts": "Options.path is no flag, number or choice",
    "helpless": "Options.weight has no docstring",
    "titled": "FIGURES is no mapping of names",
    "grpo": "its name is taken by the engine's own advantages",
    "Upper": "write its name in lower-case letters",
    "options": "its name is that of a setting of the same section",
    "aimless": "has no AGGREGATION",
    "scoreless": "has neither score(outcome, options) nor part",
    "unread": "has no function recognises",
    "nowhere": "has no function environment",
    "still": "has no function numbers",
    "untitled": "has no FIGURES",
    "any": "there is no group grove.optimisers",
}


@pytest.fixture
def faulty(tmp_path):
    with installed(a_package(tmp_path / "faulty", MODULES, POINTS)):
        yield


def test_a_broken_plug_in_is_named_with_its_reason_and_left_out(faulty, capsys):
    assert main(["plugins", "--json"]) == 1
    found = {one["name"]: one["error"] for one in json.loads(capsys.readouterr().out)["plugins"]}
    assert {name for name, error in found.items() if not error} == {"sound", "high", "raising"}
    for name, reason in FAULTS.items():
        assert found[name].startswith(reason), (name, found[name])
    advantages = registry("advantages")
    assert set(advantages.names()) == {*advantages.methods.own, "sound"}
    assert load_recipe("demo", {"credit.advantage": "sound"})


def test_a_run_that_needs_a_broken_plug_in_is_refused_with_its_package(faulty):
    with pytest.raises(ConfigError) as caught:
        load_recipe("demo", {"credit.advantage": "missing"})
    (problem,) = caught.value.problems
    assert (problem["path"], problem["value"]) == ("credit.advantage", "missing")
    assert "of package grove_toy 0.2: cannot be imported" in problem["reason"]
    assert load_recipe("demo", {"credit.advantage": "grpo"}), "the engine's own"


def test_a_method_that_would_not_get_what_it_needs_is_refused_by_name(tmp_path):
    needs = 'NEEDS = {"entropies"}\n'
    part = (EXAMPLE / "grove_example" / "brief.py").read_text()
    sampler = (EXAMPLE / "grove_example" / "unsolved.py").read_text()
    strategy = (EXAMPLE / "grove_example" / "best_first.py").read_text()
    modules = {
        "credited": "NEEDS = {'hidden_states'}\n" + ADVANTAGE,
        "rewarded": f"{part}\n{needs}", "drawn": f"{sampler}\n{needs}",
        "planted": f"{strategy}\nMAKES = {{'share'}}\n",
    }  # fmt: skip
    kinds = {"advantages": "credited", "rewards": "rewarded", "samplers": "drawn",
             "strategies": "planted"}  # fmt: skip
    points = {f"grove.{kind}": {name: f"grove_toy.{name}"} for kind, name in kinds.items()}
    with installed(a_package(tmp_path / "needy", modules, points)):
        assert "NEEDS has hidden_states; choose among" in registry("advantages").error("credited")
        for kind in ("rewards", "samplers"):
            error = registry(kind).error(kinds[kind])
            assert "NEEDS has entropies, but only advantages, losses" in error, kind
        assert "MAKES has share, but only advantages" in registry("strategies").error("planted")
        with pytest.raises(
            ConfigError, match=r"training\.sampler = 'drawn': .*NEEDS has entropies"
        ):
            load_recipe("demo", {"training.sampler": "drawn"})
        with pytest.raises(ConfigError, match=r"credit\.rewarded"):
            load_recipe("demo", {"credit.rewarded.weight": 0.5})


def test_a_name_of_two_packages_is_nobody_s(example, tmp_path):
    again = {"grove.advantages": {"scaled": "grove_other.sound"}}
    other = a_package(tmp_path / "other", {"sound": ADVANTAGE}, again, "grove_other")
    with installed(other):
        error = registry("advantages").error("scaled")
        assert "grove-example 0.1" in error and "grove_other 0.2" in error
        assert "scaled" not in registry("advantages").names()


def test_a_score_outside_its_range_stops_the_run(faulty):
    judge = training_score(CreditConfig(score="high"))
    with pytest.raises(ValueError, match=r"credit.score = high gives 2.0: it must be from 0 to 1"):
        judge(Verification(Verdict.PASSED, 1.0, (None,), 1, True))


def test_a_format_that_raises_leaves_its_rows_out_and_hides_no_other(faulty, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": 1}\n')
    with pytest.raises(DatasetError, match="the format raised ZeroDivisionError"):
        load_dataset(path, "raising")
    with pytest.raises(DatasetError, match="no format has these fields"):
        load_dataset(path)


def test_a_plug_in_that_imports_what_the_site_never_loads_is_broken(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "vllm", raising=False)  # an earlier test may have loaded it
    points = {"grove.advantages": {"heavy": "grove_toy.heavy"}}
    folder = a_package(tmp_path, {"heavy": f"import vllm\n{ADVANTAGE}"}, points)
    (folder / "vllm.py").touch()  # torch is in this process already
    with installed(folder):
        error = registry("advantages").error("heavy")
    assert "imports vllm when it is imported, which the site never loads" in error


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.service
def test_a_run_trains_two_steps_by_methods_of_a_package(example, tmp_path):
    model = tiny_policy(tmp_path / "model", 1)
    data = tiny_config(
        model,
        training={"steps": 2, "trees_per_step": 4, "validate_every": 9, "checkpoint_every": 9},
        problems={"seed": 3, "train": 20, "validation": 0, "test": 0},
    ).model_dump(mode="json")
    data["credit"] |= {"advantage": "scaled", "scaled": {"scale": 3.0}, "score": "partial"}
    data["credit"] |= {"shaping_gamma": 0.0, "dynamic_filter": False}
    data["loss"] |= {"policy": "reinforce", "reinforce": {"floor": 0.5}}
    data["search"] |= {"strategy": "best_first", "allocator": "alternating"}
    data["training"] |= {"sampler": "unsolved", "compose": "again"}
    data["evaluation"] |= {"gauges": ["answer_length", "success"]}
    log = trained(tmp_path / "run", data, EXAMPLE)
    closed = {(e.tree, e.node): e.payload["score"] for e in log if e.kind == "node.close"}
    credit = {(e.tree, e.node): e.payload["advantage"] for e in log if e.kind == "node.credit"}
    for tree in {tree for tree, _ in credit}:
        nodes = [key for key in credit if key[0] == tree]
        scores = np.array([closed[key] for key in nodes])
        expected = list(3.0 * (scores - scores.mean()))
        assert [credit[key] for key in nodes] == pytest.approx(expected, abs=1e-4)
    opened = [event.tree for event in log if event.kind == "tree.open"]
    whole = data["search"]["nodes_per_tree"]
    sizes = [sum(tree == one for tree, _ in closed) for one in opened]
    assert sizes[:4] == [whole, whole // 2] * 2, "problems 0 to 3 come first"
    updates = [event.payload for event in log if event.kind == "agent.update"]
    assert [update["step"] for update in updates] == [1, 2, 2]
    assert all(0 < update["figures"]["unlikely"] <= 1 for update in updates[:2])
    ends = [event.payload for event in log if event.kind == "step.end"]
    assert "figures" not in updates[2], "the replay is by another loss"
    assert [end.get("rows") for end in ends] == [
        None, {"rollout": updates[1]["nodes"], "replay": updates[2]["nodes"]},
    ]  # fmt: skip
    assert updates[2]["nodes"] == 4
    assert [update["learning_rate"] for update in updates] == [1e-3, 1e-3, 1e-4]
    gauged = [event.payload for event in log if event.kind == "metric.logged"]
    assert [one["step"] for one in gauged] == [1, 2]
    assert all(one["numbers"]["answer_length.tokens.wrong"] > 0 for one in gauged)
    assert all(event.payload["tags"] for event in log if event.kind == "tree.open")
    again = replayed(log, parse_config(data).evaluation)
    assert [one.numbers for one in again] == [one["numbers"] for one in gauged]


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.service
def test_a_run_trains_in_an_environment_of_a_package(example, tmp_path):
    model = tiny_policy(tmp_path / "model", 1)
    data = tiny_config(
        model,
        training={"steps": 2, "trees_per_step": 4, "validate_every": 1, "checkpoint_every": 9},
        problems={"seed": 3, "train": 20, "validation": 2, "test": 2},
    ).model_dump(mode="json")
    data["environment"] = {"name": "new_letters", "new_letters": {"turns": 2}}
    data["credit"] |= {"score": "fraction", "dynamic_filter": False, "shaping_gamma": 0.0}
    data["credit"] |= {"advantage": "smoothed", "smoothed": {"decay": 0.5}}
    log = trained(tmp_path / "run", data, EXAMPLE)
    closed = {(e.tree, e.node): e.payload for e in log if e.kind == "node.close"}
    texts = {(e.tree, e.node): e.payload["prompt"] for e in log if e.kind == "node.text"}
    parents = {(e.tree, e.node): e.payload["parent"] for e in log if e.kind == "node.open"}
    played = 0
    for (tree, node), last in closed.items():
        above = closed.get((tree, parents[tree, node]))
        if above is None or above["verdict"] != "played":
            assert "A letter?" in texts[tree, node]
            continue
        played += 1
        assert f"not in {above['program']}?" in texts[tree, node]
        letters = above["program"] + last["program"]
        assert last["fraction"] == len(set(letters)) / 2
    assert played > 0
    assert len([event for event in log if event.kind == "agent.update"]) == 2
    results = [event.payload for event in log if event.kind == "eval.result"]
    assert results and all(
        0 <= one["agents"][name] <= 1 for one in results for name in one["agents"]
    )
    mean = 0.0
    credit = {(e.tree, e.node): e.payload["advantage"] for e in log if e.kind == "node.credit"}
    for tree in dict.fromkeys(tree for tree, _ in credit):
        nodes = [key for key in credit if key[0] == tree]
        scores = np.array([closed[key]["score"] for key in nodes])
        assert [credit[key] for key in nodes] == pytest.approx(list(scores - mean), abs=1e-4)
        mean = 0.5 * mean + 0.5 * scores.mean()
    (state,) = (tmp_path / "run" / "checkpoints").glob("step-000002/state.json")
    kept = json.loads(state.read_text())["memory"]["credit.advantage"]
    assert kept == {"method": "smoothed", "state": {"mean": pytest.approx(mean)}}
