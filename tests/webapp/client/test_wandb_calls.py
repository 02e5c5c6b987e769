"""Tests of the calls of W&B that trainers make, each on a run that is kept on this machine.

Each is right, is said once to change nothing, or is refused with the remedy: the table of
docs/guides/tracking.md. The calls are those of verl, OpenRLHF, TRL, transformers, accelerate,
Lightning, torchtune, unsloth and nanoGPT.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import PIL.Image
import pytest
import torch

import grove as wandb
from tests.packaging.builds import ROOT
from webapp.client.tracking.arguments import resolved, selected
from webapp.client.tracking.axes import Axes
from webapp.client.tracking.start import checked_id, usable_id

PACKAGES = ROOT / "webapp/client/packages"
GUIDE = ROOT / "docs/guides/tracking.md"


@pytest.fixture
def kept(tmp_path):
    """A run, and what it has recorded as (kind, payload)."""
    with wandb.init(mode="offline", dir=tmp_path, id="kept") as run:

        def events(kind):
            (path,) = tmp_path.glob("*kept*")
            lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
            return [one["payload"] for one in lines if one["kind"] == kind]

        run.events = events
        yield run


def logged(run):
    return [(one["step"], one.get("numbers", {})) for one in run.events("metric.logged")]


def test_transformers_and_lightning_give_their_steps_by_define_metric(kept):
    wandb.define_metric("train/global_step")
    wandb.define_metric("*", step_metric="train/global_step", step_sync=True)
    wandb.log({"train/loss": 2.0, "train/global_step": 10})
    wandb.log({"train/loss": 1.0, "train/global_step": 20})
    wandb.log({"late": 3.0})
    wandb.log({"train/global_step": 15, "early": 1.0}, step=4)
    assert logged(kept) == [
        (10, {"train/loss": 2.0, "train/global_step": 10.0}),
        (20, {"train/loss": 1.0, "train/global_step": 20.0}),
        (20, {"late": 3.0}),
        (15, {"train/global_step": 15.0, "early": 1.0}),
    ]


def test_openrlhf_has_an_axis_for_each_beginning_of_names(kept):
    for name in ("train", "eval"):
        wandb.define_metric(f"{name}/step")
        wandb.define_metric(f"{name}/*", step_metric=f"{name}/step", step_sync=True)
    wandb.log({"train/loss": 1.0, "train/step": 7, "eval/x": 2.0, "eval/step": 3, "other": 0.0})
    steps = {name: step for step, numbers in logged(kept) for name in numbers}
    assert steps == {"train/loss": 7, "train/step": 7, "eval/x": 3, "eval/step": 3, "other": 0}
    assert kept.summary["train/loss"] == 1.0


@pytest.mark.parametrize("value", [-1, 0.5, float("nan"), True, "7", None])
def test_what_is_no_step_leaves_the_steps_as_they_are(value):
    axes = Axes()
    axes.define("*", "epoch")
    assert axes.split({"loss": 1.0, "epoch": value}) == {None: {"loss": 1.0, "epoch": value}}


def test_an_exact_name_counts_before_a_longer_beginning_and_a_shorter_one():
    axes = Axes()
    axes.define("*", "a")
    axes.define("train/*", "b")
    axes.define("train/loss", "c")
    data = {"a": 1, "b": 2, "c": 3, "train/loss": 0, "train/x": 0, "x": 0}
    assert axes.split(data) == {
        1: {"a": 1, "x": 0}, 2: {"b": 2, "train/x": 0}, 3: {"c": 3, "train/loss": 0},
    }  # fmt: skip
    axes.define("train/loss", None)
    assert axes.split({"train/loss": 5}) == {2: {"train/loss": 5}}
    with pytest.raises(ValueError, match=r"name = 'a\*b'.*at its end"):
        axes.define("a*b", "c")


def test_settings_and_summary_are_updated_as_programs_do(kept):
    wandb.config.update({"lr": 1}, allow_val_change=True)
    wandb.config.update(argparse.Namespace(lr=2, layers=3))
    wandb.config["model/num_parameters"] = 5
    wandb.run.summary.update({"best": 0.5})
    wandb.summary["last"] = 0.25
    assert wandb.config.lr == 2 and wandb.config.get("nothing", 4) == 4
    assert dict(wandb.config) == {"lr": 2, "layers": 3, "model/num_parameters": 5}
    assert dict(wandb.summary) == {"best": 0.5, "last": 0.25}
    wandb.run.tags = (*wandb.run.tags, "first")
    wandb.run.tags += ("second",)
    wandb.run.notes = "a note"
    described = kept.events("run.described")
    assert {"tags": ["first", "second"]} in described and {"notes": "a note"} in described


def test_commit_false_joins_the_next_call(kept):
    wandb.log({"a": 1.0}, commit=False)
    wandb.log({"b": 2.0})
    wandb.log({"c": 3.0})
    assert logged(kept) == [(0, {"a": 1.0}), (0, {"b": 2.0}), (1, {"c": 3.0})]


def test_a_step_that_ends_moves_forward_whatever_step_it_names(kept):
    wandb.log({"a": 1.0}, step=10)
    wandb.log({"late": 2.0}, step=3, commit=True)
    wandb.log({"b": 3.0})
    wandb.log({"c": 4.0}, step=20.0)
    steps = {name: step for step, numbers in logged(kept) for name in numbers}
    assert steps == {"a": 10, "late": 3, "b": 11, "c": 20}


NO_STEPS = [-1, 1.5, "3", True, 2**40, 2**63, float("nan"), [1], torch.tensor([1, 2])]


@pytest.mark.parametrize("step", NO_STEPS, ids=str)
def test_what_is_no_step_counts_as_none_and_is_said_once(kept, capsys, step):
    wandb.log({"a": 1.0}, step=4)
    for _ in range(2):
        wandb.log({"b": 2.0}, step=step)
    assert logged(kept) == [(4, {"a": 1.0}), (4, {"b": 2.0}), (5, {"b": 2.0})]
    said = capsys.readouterr().err
    assert said.count("is no step, and counts as none: give a whole number of 0 to 2147483647") == 1


@pytest.mark.parametrize("step", [5, 5.0, numpy.int64(5), numpy.float32(5), torch.tensor([5])])
def test_a_step_is_a_whole_number_of_any_library(kept, step):
    wandb.log({"a": 1.0}, step=step)
    assert logged(kept) == [(5, {"a": 1.0})]


def test_what_is_logged_after_the_end_is_left_out_and_said_once(tmp_path, capsys):
    """A callback that is called once more."""
    run = wandb.init(mode="offline", dir=tmp_path, id="over")
    run.finish()
    run.log({"late": 1.0}, step=3)
    run.config.update({"late": 1})
    run.summary["late"] = 1
    run.alert("late")
    run.tags = ("late",)
    run.finish(exit_code=1)
    (path,) = tmp_path.glob("*over*")
    assert "late" not in path.read_text()
    assert capsys.readouterr().err.count("the run over is over, and what is logged to it") == 1


def test_what_a_run_is_called_may_be_a_number(tmp_path):
    with wandb.init(mode="offline", dir=tmp_path, id=0, name=5, group=6, notes=["a"]) as run:
        assert (run.id, run.name, run.group, run.notes) == ("0", "5", "6", "['a']")


def test_a_table_that_grows_is_recorded_row_by_row(kept):
    """As prime-rl logs its samples."""
    wandb.define_metric("*", step_metric="step")
    table = wandb.Table(columns=["step", "text"], log_mode="INCREMENTAL")
    for step in (1, 2):
        table.add_data(step, "x")
        wandb.log({"samples": table, "step": step})
    tables = [one["tables"]["samples"] for one in kept.events("metric.logged") if "tables" in one]
    assert [one["rows"] for one in tables] == [[[1.0, "x"]], [[2.0, "x"]]]
    assert [row for _, row in table.iterrows()] == [[1, "x"], [2, "x"]]
    assert wandb.Table().columns == ["Input", "Output", "Expected"]


class Frame:
    """A table of pandas, as far as it is read."""

    columns = ("a", "b")
    shape = (2, 2)

    def to_numpy(self):
        class Rows:
            def tolist(self):
                return [[1, "x"], [2, "y"]]

        return Rows()


class Drawn:
    """A figure of plotly."""

    def to_plotly_json(self):
        return {}


def test_what_is_logged_without_a_class_is_kept_as_what_it_is(kept):
    """TRL's LogCompletionsCallback logs a table of pandas itself."""
    wandb.log({"completions": Frame(), "curve": Drawn(), "pr": wandb.plot.pr_curve([0], [[1, 0]])})
    wandb.log({"again": wandb.Table(data=Frame()), "pictures": wandb.Image(wandb.Image([[0]]))})
    first, second = kept.events("metric.logged")
    assert first["tables"]["completions"]["rows"] == [[1.0, "x"], [2.0, "y"]]
    assert first["texts"]["curve"] == "not kept: Plotly"
    assert first["texts"]["pr"].startswith("not kept: Curve: compute the curve by scikit-learn")
    assert second["tables"]["again"]["columns"] == ["a", "b"] and "pictures" in second["images"]


class Figure:
    """Draws itself into a file, as those of matplotlib do."""

    def savefig(self, file, format, dpi):
        PIL.Image.new("L", (dpi, dpi)).save(file, format)


def test_media_are_kept_alone_and_in_lists(kept):
    picture = wandb.Image([[0]], caption="one", file_type="png")
    wandb.log({"one": [picture], "two": [picture, wandb.Image([[9]])], "fig": Figure()})
    table = wandb.Table(columns=["step", "text"])
    table.add_data(1, "x")
    table.add_row(2, "y")
    wandb.log({"t": wandb.Table(columns=table.columns, data=table.data, log_mode="MUTABLE")})
    wandb.log({"cloud": wandb.Object3D([[0, 0, 0]]), "clip": wandb.Video("x.mp4", fps=4)})
    images = {name for one in kept.events("metric.logged") for name in one.get("images", {})}
    assert images == {"one", "two.0", "two.1", "fig"}
    tables = [one["tables"] for one in kept.events("metric.logged") if "tables" in one]
    assert tables[0]["t"]["rows"] == [[1.0, "x"], [2.0, "y"]]
    texts = [one["texts"] for one in kept.events("metric.logged") if "texts" in one]
    assert texts == [{"cloud": "not kept: Object3D", "clip": "not kept: Video"}]


def test_plots_are_kept_as_their_tables():
    table = wandb.Table(columns=["x", "y"], data=[[1, 2]])
    assert wandb.plot.line(table, "x", "y", title="t") is table
    assert wandb.plot.bar(table, "x", "y") is table and wandb.plot_table("v", table) is table
    series = wandb.plot.line_series([0, 1], [[5, 6], [7, 8]], keys=["a", "b"], xname="step")
    assert series.columns == ["step", "lineKey", "lineVal"]
    assert series.data == [[0, "a", 5], [1, "a", 6], [0, "b", 7], [1, "b", 8]]
    each = wandb.plot.line_series([[0, 1], [4]], [[5, 6], [7]])
    assert each.data == [[0, "line_0", 5], [1, "line_0", 6], [4, "line_1", 7]]
    matrix = wandb.plot.confusion_matrix(y_true=[0, 1, 1], preds=[0, 0, 1], class_names=["c", "d"])
    assert matrix.data == [["c", "c", 1], ["c", "d", 0], ["d", "c", 1], ["d", "d", 1]]
    by_probs = wandb.plot.confusion_matrix(probs=[[0.9, 0.1], [0.2, 0.8]], y_true=[0, 1])
    assert by_probs.data[0] == ["0", "0", 1] and by_probs.data[3] == ["1", "1", 1]
    with pytest.raises(ValueError, match="either probs or preds"):
        wandb.plot.confusion_matrix(y_true=[0])
    with pytest.raises(ValueError, match="class_names has 1, the data 2"):
        wandb.plot.confusion_matrix(y_true=[1], preds=[0], class_names=["c"])


def test_what_would_keep_a_file_is_said_once_and_the_training_goes_on(kept, tmp_path, capsys):
    artifact = wandb.Artifact(name="model-1", type="model", metadata={"a": 1})
    artifact.add_dir(str(tmp_path))
    artifact.add_file("no such file")
    with artifact.new_file("layers.txt", mode="wb") as file:
        file.write(b"x")
    assert wandb.log_artifact(artifact, aliases=["latest"]).wait() is artifact
    assert wandb.run.log_artifact(artifact) is artifact and artifact.metadata == {"a": 1}
    assert wandb.save("model.py", base_path=".") == [] and wandb.run.log_code(".") == []
    wandb.run.name = "another"
    said = capsys.readouterr().err
    assert said.count("keep nothing") == 1 and "grove push-model" in said
    assert said.count("name = 'another': a run keeps its name; give it to init(name=...)") == 1


REFUSED = [
    ("Api", "webapp.client.Grove"), ("sweep", "page of an experiment"),
    ("agent", "page of an experiment"), ("controller", "page of an experiment"),
    ("use_artifact", "read the files"), ("use_model", "grove pull-model"),
    ("restore", "read the file"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "remedy"), REFUSED)
def test_what_a_program_needs_the_result_of_is_refused_with_the_remedy(name, remedy):
    call = wandb
    for part in name.split("."):
        call = getattr(call, part)
    with pytest.raises(wandb.NotSupported, match=f"grove.{name} does not exist: .*{remedy}"):
        call({"method": "grid"}, project="p")


def test_calls_that_change_nothing_are_taken(kept, capsys):
    assert wandb.login(key="x", relogin=True) is True and wandb.setup() is None
    wandb.require("core")
    wandb.watch(None, log="all", log_freq=10)
    wandb.unwatch(None)
    wandb.run._label(code="transformers_trainer")
    wandb.run.mark_preempting()
    wandb.mark_preempting()
    wandb.termwarn("a sentence", repeat=False)
    assert "a sentence" in capsys.readouterr().err
    assert wandb.run.sweep_id is None and wandb.run.path == "kept" and wandb.run.get_url() == ""
    assert len(wandb.util.generate_id()) == 8 != len(wandb.util.generate_id(16))
    wandb.alert(title="t", text="x", level=wandb.AlertLevel.ERROR, wait_duration=300)


def test_parts_of_wandb_that_programs_read_are_there(kept):
    assert wandb.errors.CommError is wandb.CommError and wandb.data_types.Table is wandb.Table
    assert wandb.sdk.wandb_run.Run is wandb.Run and wandb.__version__.count(".") == 2
    assert isinstance(kept, wandb.wandb_run.Run) and kept.config_static is kept.config
    assert kept.sync_dir == kept.dir and "kept</a>" in kept.to_html() and kept.status()["sent"]
    metric = wandb.define_metric("loss", step_metric="epoch", summary="min")
    assert (metric.name, metric.step_metric, metric.summary) == ("loss", "epoch", "min")
    settings = copy.deepcopy(wandb.Settings(console="off"))
    assert settings.console == "off" and settings.silent is None
    wandb.config.persist()
    artifact = wandb.log_artifact(wandb.Artifact("model", "model"))
    assert artifact.version is None and artifact.qualified_name == "model" and artifact.is_draft()
    with pytest.raises(wandb.NotSupported, match="read the files"):
        artifact.download()


def test_other_ways_to_make_what_is_logged(kept):
    table = wandb.Table(columns=["a"], data=[[1], [2]])
    table.cast("a", int)
    table.add_computed_columns(lambda index, row: {"b": row["a"] * 2 + index})
    assert table.get_index() == [0, 1] and table.get_column("b", convert_to="numpy").sum() == 7
    wandb.log({
        "cloud": wandb.Object3D.from_point_cloud(points=[[0, 0, 0]], boxes=[]),
        "molecule": wandb.Molecule.from_smiles("C", caption="methane"),
    })  # fmt: skip
    (texts,) = [one["texts"] for one in kept.events("metric.logged")]
    assert texts == {"cloud": "not kept: Object3D", "molecule": "not kept: Molecule: methane"}


def test_modes_of_init_and_their_older_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert wandb.run is None
    wandb.init(mode="disabled", anonymous="allow", save_code=True, job_type="train", force=True)
    assert wandb.run.disabled
    wandb.finish(exit_code=None)
    assert wandb.run is None
    given = wandb.Settings(mode="dryrun", run_id="mine", console="off", init_timeout=300)
    wandb.init(settings=given, dir=tmp_path, sync_tensorboard=True)
    assert wandb.run.offline and wandb.run.id == "mine"
    assert "grove import-tensorboard FOLDER --follow" in capsys.readouterr().err
    wandb.join()
    with pytest.raises(wandb.Error, match=r"config = 'a\.yaml': give the settings"):
        wandb.init(mode="offline", config="a.yaml")
    with pytest.raises(wandb.Error, match="mode = 'never': give one of online"):
        wandb.init(mode="never")


def test_a_run_under_way_is_returned_as_by_wandb(kept, tmp_path, capsys):
    """accelerate calls init though the program did."""
    assert wandb.init(project="other", config={"x": 1}) is kept and wandb.run is kept
    assert "the run kept is under way" in capsys.readouterr().err
    with pytest.raises(wandb.Error, match="resume = 'must': a run is under way"):
        wandb.init(id="b", resume="must")
    second = wandb.init(mode="offline", dir=tmp_path, id="second", reinit="create_new")
    assert wandb.run is kept and second.id == "second" and not kept.is_over
    second.finish()
    after = wandb.init(mode="offline", dir=tmp_path, id="after", reinit="finish_previous")
    assert kept.is_over and wandb.run is after
    after.finish()
    assert wandb.run is None


@pytest.mark.parametrize("given", ["a b", "ümlaut", "x" * 100, "verl (7B)--gsm8k"])
def test_an_id_that_wandb_takes_is_always_the_same_here(given):
    """verl makes the id of project and experiment."""
    made = usable_id(given)
    assert made == usable_id(given) and checked_id(made) == made
    assert made != usable_id(given + "x") and made[:-9] in (given, made[:-9])


@pytest.mark.parametrize("given", ["", "a/b", "50%", "x" * 129, "a\nb"])
def test_an_id_that_wandb_refuses_is_refused(given):
    with pytest.raises(wandb.InitRefused, match="give 1 to 64 letters"):
        usable_id(given)


def test_settings_of_wandb_say_what_the_run_is():
    settings = wandb.Settings(run_id="a", run_group="g", project="p", run_tags=("t",), x="y")
    made = resolved({"name": "n", "id": "b"}, settings)
    assert {name: one for name, one in made.items() if one is not None} == {
        "name": "n", "id": "b", "group": "g", "project": "p", "tags": ("t",),
    }  # fmt: skip
    for branch in ("resume_from", "fork_from"):
        with pytest.raises(wandb.InitRefused, match=f"{branch} = 'a\\?_step=5'"):
            resolved({branch: "a?_step=5"}, None)


def test_each_process_of_a_shared_run_has_its_own_in_one_group():
    """slime and prime-rl start W&B so."""
    primary = resolved({"id": "run"}, wandb.Settings(mode="shared", x_primary=True))
    assert (primary["mode"], primary["id"], primary["group"]) == ("online", "run", None)
    given = wandb.Settings(mode="shared", x_primary=False, x_label="rollout", run_id="run")
    other = resolved({}, given)
    assert (other["id"], other["group"], other["name"]) == ("run-rollout", "run", "run rollout")
    assert (other["mode"], other["resume"]) == ("online", "allow")


class Given:
    lr = 1

    def __init__(self):
        self.layers = 2


class Mapped:
    """As ml_collections' ConfigDict."""

    def items(self):
        return [("lr", 1), ("secret", 2)]


def test_settings_are_those_of_a_dictionary_or_an_object_without_what_is_kept_out():
    assert selected(Given(), None, None) == {"layers": 2} and selected(None, None, None) == {}
    assert selected(Mapped(), ["secret"], None) == {"lr": 1}
    assert selected({"a": 1, "b": 2}, None, ["b"]) == {"b": 2}
    with pytest.raises(wandb.InitRefused, match=r"config: give a dictionary .*, not int"):
        selected(5, None, None)
    with pytest.raises(wandb.InitRefused, match="give one of the two"):
        selected({}, ["a"], ["b"])


def test_what_a_run_is_can_be_read_as_of_wandb(kept, tmp_path):
    assert kept.settings.mode == "offline" and kept.settings.run_id == "kept"
    assert kept.config.as_dict() == kept.config._as_dict() == {} and kept.starting_step == 0
    kept.write_logs("a line")
    assert {"level": "info", "message": "a line"} in kept.events("log.line")
    assert kept.display() is False and kept.sweep_url is None and kept.start_time > 1e9
    kept.finish()
    with wandb.init(mode="disabled", id="off") as disabled:
        assert disabled.id == "off" and Path(disabled.dir).is_dir()


STAND_IN = """
    import sys
    import grove
    from grove.integrations.wandb import install
    install(project="Oaks"), install()
    import importlib.metadata, importlib.util
    import wandb
    from wandb.sdk.lib.config_util import ConfigError
    from wandb.errors import CommError
    import wandb.plot
    from wandb.sdk.wandb_run import Run
    import wandb.util, wandb.data_types, wandb.apis.public
    from wandb.errors.term import termwarn
    from wandb.sdk.data_types.base_types.wb_value import WBValue
    from wandb.sdk.data_types.image import Image
    from wandb.sdk.mailbox.mailbox_handle import ServerResponseError
    from wandb.util import generate_id, json_dumps_safer
    assert issubclass(wandb.Table, WBValue) and Image is wandb.data_types.Image
    assert wandb.__version__.count(".") == 2 and wandb.sdk.wandb_run.Run is Run
    import os
    os.environ.update(WANDB_MODE="dryrun", WANDB_NAME="named", WANDB_TAGS="a,b", GROVE_NAME="",
                      GROVE_DIR=os.environ["SPOOLS"])
    run = wandb.init(project="huggingface", entity="team")
    assert run.offline and run.tags == ("a", "b"), run.tags
    assert (run.name, run.project, run.entity) == ("named", "Oaks", ""), run.settings.__dict__
    run.finish()
    assert wandb is grove and Run is grove.Run and importlib.util.find_spec("wandb")
    assert importlib.metadata.version("wandb").count(".") == 2
    assert importlib.metadata.version("httpx")
    print("same")
"""


@pytest.mark.parametrize("is_late", [False, True])
def test_libraries_that_import_wandb_find_grove(is_late, tmp_path):
    code = "\n".join(line.strip() for line in STAND_IN.splitlines())
    if is_late:
        code = code.replace("import sys\n", "import sys\nsys.modules['wandb'] = sys\n")
    command = [sys.executable, "-c", code]
    paths = os.pathsep.join([str(ROOT), str(PACKAGES)])
    environment = {**os.environ, "PYTHONPATH": paths, "SPOOLS": str(tmp_path)}
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    if is_late:
        assert "Unusable: wandb is imported already: call install() before" in done.stderr
    else:
        assert done.stdout == "same\n", done.stderr


NO_CALLS = {
    "ArtifactTTL", "CommError", "Config", "Error", "InitRefused", "NotStarted",
    "NotSupported", "Run", "Text", "UsageError",
}  # fmt: skip


def test_the_guide_names_every_call_and_shows_the_program_as_it_is():
    guide = GUIDE.read_text("utf-8")
    spans = re.findall(r"`([^`\n]+)`", guide)
    named = {name for span in spans for name in re.findall(r"\w+", span)}
    for name in wandb.__all__:
        assert name in named or name in NO_CALLS, name
    program = (ROOT / "docs/examples/trl_grpo.py").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    shown = [one for one in blocks if "report_to" in one]
    assert shown and all(
        line.strip().split("  # noqa")[0] in program
        for line in shown[0].splitlines() if line.strip() not in ("", "...")
    )  # fmt: skip
