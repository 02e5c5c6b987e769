"""Tests that doctor and refused run report unmet requirements with the reason."""

import json
from dataclasses import replace

import pytest

from engine.__main__ import main
from engine.config.schema import STARTERS
from engine.policy.models.load import load_policy
from engine.recipes import load_recipe, recipe_names
from engine.resources.requirements import Machine, needs_of, report, visible_gpus
from engine.resources.shapes import KNOWN_SHAPES, shape_of
from tests.helpers.small_recipes import CLUSTERS

NODES = Machine(cores=384, memory=4000.0, gpus=(141.0,) * 16, disk=20_000.0)
CLUSTER = replace(NODES, gpus=(141.0,) * 32)


def missing(recipe, machine, **overrides):
    config = load_recipe(recipe, {path.replace("__", "."): v for path, v in overrides.items()})
    return {need.what: need for need in needs_of(config, machine) if not need.fits}


@pytest.mark.parametrize("name", ["oak", "fern"])
def test_the_size_of_a_model_is_computed_from_its_shape(name):
    shape = shape_of(f"starter:{name}")
    assert shape == shape_of(str(STARTERS / name))
    model = load_policy(f"starter:{name}").model
    # The small norms on queries and keys, which some models have, are not in the shape.
    assert shape.parameters == pytest.approx(model.num_parameters(), rel=0.002)


def test_models_of_the_papers_have_listed_sizes(tmp_path):
    sizes = {name: shape.parameters / 1e9 for name, shape in KNOWN_SHAPES.items()}
    assert sizes["Qwen/Qwen3-8B"] == pytest.approx(8.19, abs=0.01)
    assert sizes["Qwen/Qwen3-32B"] == pytest.approx(32.76, abs=0.01)
    assert shape_of(str(tmp_path)) is None


def test_a_machine_without_gpus_lacks_what_a_paper_recipe_needs():
    result = missing("mars2-8b", Machine(2, 24.0, (), 60.0))
    assert result["agents.first.model"].remedy.endswith("agents.first.model=/models/Qwen3-8B")
    assert result["GPUs"].needs == "9 to 16" and result["GPUs"].has == "none"
    assert {"cores", "disk for checkpoints", "GPU of each learner rank of second"} <= result.keys()


def test_memory_is_reported_by_consumer():
    whole = {"agents__0__learner_ranks": 1, "agents__1__learner_ranks": 1}
    small = Machine(384, 4000.0, (24.0,) * 16, 20_000.0)
    one = missing("mars2-8b", small, **whole)
    parts = one["GPU of first's learner or generator"].parts
    # bfloat16 with float32 copies of weights and gradients, Adam's two moments, one reference.
    weights = 8.19e9 / 2**30
    assert parts["generator weights"] == pytest.approx(2 * weights, rel=0.01)
    assert parts["trained weights"] == pytest.approx(4 * weights, rel=0.01)
    assert parts["gradients"] == pytest.approx(6 * weights, rel=0.01)
    assert parts["optimizer"] == pytest.approx(8 * weights, rel=0.01)
    assert parts["reference"] == pytest.approx(2 * weights, rel=0.01)
    assert "vLLM's share" not in parts, "it sleeps while the agent learns, which takes more"
    sharded = missing("mars2-8b", small)
    quarter = sharded["GPU of each learner rank of first"].parts
    assert quarter["optimizer"] == pytest.approx(parts["optimizer"] / 4)
    assert quarter["gradients"] == pytest.approx(weights, rel=0.01), "float32 shards"
    assert quarter["activations"] == parts["activations"]
    assert sharded["vLLM of first"].parts["weights"] == parts["generator weights"]
    flow = missing(
        "mars2-8b", small, loss__policy="flowrl", loss__kl_coefficient=0.0,
        credit__dynamic_filter=False,
    )  # fmt: skip
    of_rank = flow["GPU of each learner rank of first"].parts
    # Two layers of width 4096 and a last one, whole, in float32 with gradient and two moments.
    assert of_rank["heads"] == pytest.approx(16 * 2 * 4096**2 / 2**30, rel=0.01)
    assert of_rank["reference"] == pytest.approx(quarter["reference"]) and "heads" not in quarter


def test_the_papers_answers_fit_where_activations_are_computed_again():
    models = {"agents.first.model", "agents.second.model"}
    assert missing("mars2-8b", NODES).keys() == models
    assert missing("mars2-32b", CLUSTER).keys() == models
    outcome = missing("mars2-8b", NODES, training__recompute_activations=False)
    assert outcome.keys() == models | {
        f"GPU of each learner rank of {n}" for n in ("first", "second")
    }
    result = outcome["GPU of each learner rank of first"]
    assert result.remedy.startswith("training.recompute_activations=true makes it 7")
    assert result.parts["activations"] > 250


def test_the_remedy_is_a_change_after_which_it_fits():
    needed = missing("mars2-32b", replace(CLUSTER, gpus=(79.0,) * 32))
    result = needed["GPU of each learner rank of first"].remedy
    ranks = int(result.split("learner_ranks=")[1].split()[0])
    more = {f"agents__{n}__learner_ranks": ranks for n in (0, 1)}
    machine = replace(CLUSTER, gpus=(79.0,) * 1000)
    assert "GPU of each learner rank of first" not in missing("mars2-32b", machine, **more)
    cramped = {"agents__0__generator__gpu_memory_utilization": 0.1}
    outcome = missing("mars2-8b", NODES, **cramped)["vLLM of first"]
    assert outcome.has == "14.1 GiB (0.1 of 141)"
    assert "raise agents.first.generator.gpu_memory_utilization" in outcome.remedy
    saved = missing("mars2-32b", replace(CLUSTER, memory=512.0))["memory of this machine"]
    assert saved.needs == "732.3 GiB"


def test_of_a_cluster_elsewhere_only_models_and_disk_are_looked_at_here():
    away = Machine(2, 24.0, (), 20_000.0, remote=True)
    assert missing("mars2-8b", away).keys() == {"agents.first.model", "agents.second.model"}


def test_the_doctor_and_the_refused_run_say_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert main(["doctor", "demo"]) == 0
    capsys.readouterr()
    assert main(["doctor", "mars2-32b", "--json"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert not data["fits"] and {"what", "needs", "has", "remedy"} <= data["needs"][0].keys()
    assert main(["doctor", "mars2-32b"]) == 2
    report = capsys.readouterr().out
    assert main(["prepare", str(tmp_path), "mars2-32b"]) == 0
    assert main(["train", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "HardwareError" in said and "needs are not met here" in said
    verdict, *lines = report.splitlines()
    assert verdict.removeprefix("mars2-32b: ") in said
    for line in lines:
        assert "disk" in line or line in said
    assert not (tmp_path / "events.jsonl").exists()


def test_an_unknown_recipe_or_setting_is_refused(capsys):
    assert main(["doctor", "nothing"]) == 2
    assert "unknown recipe" in capsys.readouterr().err
    assert main(["doctor", "demo", "search.nodes=3"]) == 2


def doctor(capsys, *words):
    status = main(["doctor", *words, "--json"])
    data = json.loads(capsys.readouterr().out)
    assert status == (0 if data["fits"] else 2)
    return {need["what"]: need for need in data["needs"] if not need["fits"]}


def test_the_doctor_opens_what_a_run_would_open(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "config.json").write_text("{}")
    (row,) = doctor(capsys, "demo", f"agents.oak.model={tmp_path}").values()
    assert row["what"] == "agents.oak.model" and "`architectures`" in row["remedy"]
    (row,) = doctor(capsys, "demo", f"problems.dataset={tmp_path / 'none'}").values()
    assert row["what"] == "problems.dataset" and "No such file" in row["remedy"]


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_reports_a_remedy_for_each_missing_resource(
    name, capsys, monkeypatch, tmp_path
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("GROVE_MODELS_DIR", str(tmp_path))
    short = doctor(capsys, name)
    assert all(need["remedy"] for need in short.values())
    if name in CLUSTERS:
        assert {"GPUs", "agents.first.model"} <= short.keys()
    elif name == "smollm2":
        assert short.keys() == {"agents.writer.model", "agents.repairer.model"}
        assert "run: grove models add smollm2" in short["agents.writer.model"]["remedy"]
    else:
        assert not short


def test_processes_that_exceed_memory_are_reported():
    outcome = missing("demo", Machine(2, 24.0, (), 60.0), agents__0__learner_ranks=64)
    result = outcome["memory of this machine"]
    assert result.parts["libraries of 66 processes"] == pytest.approx(66 * 0.3)
    assert "agents.oak.learner_ranks" in result.remedy


def test_memory_is_printed_in_a_readable_unit():
    result = report(needs_of(load_recipe("demo"), Machine(2, 24.0, (), 60.0)))
    assert "MiB" in result and "0.0 GiB" not in result
    assert "508,416 parameters" in result
    result = report(needs_of(load_recipe("demo", {"compute.device": "cuda"}), NODES))
    assert "MISSING" not in result


@pytest.mark.parametrize(
    "visible, left",
    [(None, [1, 2, 3]), ("2,0", [3, 1]), ("", []), ("-1", []), ("0,7,1", [1]), ("GPU-af", [1])],
)
def test_gpus_that_cuda_hides_are_not_counted(visible, left):
    assert visible_gpus([1, 2, 3], visible) == left
