"""Tests of tracking: what a program logs reaches the server, each record once, whatever fails."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import textwrap
from datetime import timedelta

import pytest
from django.db.models import F

import grove
from tests.helpers.builders import a_token
from tests.helpers.waiting import eventually
from tests.packaging.builds import ROOT
from tests.webapp.client.conftest import tracked
from webapp.accounts.models import Scope
from webapp.client import Grove, Refused
from webapp.client.cli import main
from webapp.client.tracking import limits
from webapp.client.tracking.start import start
from webapp.experiments.models import Run
from webapp.telemetry.ingest import logged_checks
from webapp.telemetry.models import Event, Metric
from webapp.telemetry.selectors import folded

PATHS = os.pathsep.join((str(ROOT), str(ROOT / "webapp" / "client" / "packages")))


def program(text, directory, **variables):
    """A process that runs a program of a researcher."""
    given = {**os.environ, "PYTHONPATH": PATHS, "GROVE_DIR": str(directory), **variables}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)], env=given, cwd=directory,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def logged_numbers(run, name):
    events = Event.objects.filter(run=run, kind="metric.logged").order_by("seq")
    numbers = [event.payload.get("numbers", {}) for event in events]
    return [one[name] for one in numbers if name in one]


@pytest.mark.large
def test_a_program_logs_with_the_names_of_wandb(here, tmp_path):
    wandb = grove
    run = wandb.init(project="Oaks", name="first try", config={"lr": 0.1}, tags=["a b", "c"])
    wandb.config.update({"batch": 8})
    wandb.config.deep = {"er": [1, 2]}
    wandb.log({"train/loss": 1.5, "deep": {"er": 2}, "ok": True, "note": "hello"})
    wandb.log({"train/loss": math.nan, "hist": wandb.Histogram([1, 2, 3], num_bins=2)})
    wandb.log({"table": wandb.Table(columns=["a", "b"], data=[[1, "x"], [None, math.inf]])}, step=7)
    wandb.log({"picture": wandb.Image([[0]], caption="a tree")})
    wandb.summary["best"] = 0.25
    wandb.alert("Careful", "it is hot", level=wandb.AlertLevel.WARN)
    wandb.watch(None)
    wandb.define_metric("train/*", step_metric="step")
    assert wandb.run is run and run.url.startswith(here.address) and run.summary["deep.er"] == 2
    wandb.finish()
    assert wandb.run is None
    stored = tracked(run.id)
    assert (stored.state, stored.tracked, stored.step) == ("finished", True, 7)
    assert stored.experiment.name == "first try" and stored.tags == ["a-b", "c"]
    assert stored.tracking.config == {"lr": 0.1, "batch": 8, "deep": {"er": [1, 2]}}
    assert stored.config == {} and stored.result["summary"] == {"best": 0.25}
    series = dict(Metric.objects.filter(run=stored).values_list("name", "value"))
    assert series == {"logged.train~1loss": 1.5, "logged.deep.er": 2, "logged.ok": 1}
    state = folded(stored)
    logged = state["logged"]
    assert logged["texts"]["note"]["value"] == "hello"
    picture = logged["images"]["picture"]["value"]
    assert (picture["format"], picture["caption"]) == ("png", "a tree")
    assert logged["nonfinite"]["train/loss"]["value"] == "nan"
    assert logged["histograms"]["hist"]["value"] == {"edges": [1, 2, 3], "counts": [1, 2]}
    assert logged["tables"]["table"]["value"]["rows"] == [[1, "x"], [None, "inf"]]
    assert [(one["level"], one["message"]) for one in state["logs"]] == [
        ("warning", "Careful: it is hot")
    ]
    assert [path.name[-5:] for path in (tmp_path / "logs").iterdir()] == [".sent"]
    with Grove(here.address, here.token) as client:
        values = client.ask(dict, "GET", f"/runs/{stored.pk}/logged",
                            params={"kind": "texts", "name": "note"})["values"]  # fmt: skip
        assert [(one["step"], one["value"]) for one in values] == [(0, "hello")]
        assert client.points(str(stored.pk), "logged.train~1loss").value == [1.5]


@pytest.mark.large
def test_a_run_that_is_resumed_by_its_id_continues_its_series(here):
    for first, policy in ((0, "never"), (3, "allow"), (6, "must")):
        with grove.init(id="again", resume=policy, config={f"from{first}": 1}) as run:
            assert run.step == first and run.resumed == (first > 0)
            for value in range(first, first + 3):
                grove.log({"loss": value})
    run = tracked("again")
    assert logged_numbers(run, "loss") == list(range(9)) and run.state == "finished"
    assert run.tracking.config == {"from0": 1, "from3": 1, "from6": 1}
    with Grove(here.address, here.token) as client:
        assert client.points(str(run.pk), "logged.loss").step == list(range(9))


@pytest.mark.large
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"id": "absent", "resume": "must"}, "Oaks has no run of this id; give resume='allow'"),
        ({"id": "taken"}, "Oaks has a run of this id; give resume='allow'"),
        ({"project": "Elms"}, "project = 'Elms': this token sees Oaks"),
        ({"entity": "elsewhere"}, "this token sees none in 'elsewhere'"),
        ({"id": "a/b"}, "id = 'a/b': give 1 to 64 letters"),
        ({"mode": "dry"}, "mode = 'dry': give one of online, offline, disabled"),
        ({"resume": "maybe"}, "resume = 'maybe': give one of allow, must, never, auto"),
        ({"resume": "must"}, "resume = 'must': give the id"),
    ],
)
def test_a_run_that_cannot_be_logged_is_refused_at_once(here, tmp_path, given, reason):
    if given.get("id") == "taken":
        grove.init(id="taken").finish()
    with pytest.raises(grove.InitRefused) as refusal:
        grove.init(**given)
    assert reason in str(refusal.value)
    assert grove.run is None and not list((tmp_path / "logs").glob("*.spool"))


@pytest.mark.large
def test_a_token_that_may_not_send_events_is_refused_at_once(here, monkeypatch):
    token = a_token(here.cast.bob, here.cast.project, Scope.RUNS_WRITE)
    monkeypatch.setenv("GROVE_TOKEN", token)
    with pytest.raises(grove.InitRefused, match="telemetry:write"):
        grove.init()
    monkeypatch.setenv("GROVE_TOKEN", "grove_wrong")
    with pytest.raises(grove.InitRefused, match="401"):
        grove.init()


@pytest.mark.large
def test_two_processes_never_log_to_one_run_at_once(here, tmp_path):
    run = grove.init(id="shared")
    text = "import grove\ngrove.init(id='shared', resume='allow')"
    elsewhere = tmp_path / "elsewhere"  # another machine has other spools
    elsewhere.mkdir()
    stderr = program(text, elsewhere).communicate(timeout=60)[1]
    assert "InitRefused: refused: 409" in stderr and "another process on" in stderr
    stderr = program(text, tmp_path / "logs").communicate(timeout=60)[1]
    assert "InitRefused: id = 'shared'" in stderr and "is alive" in stderr
    run.log({"loss": 1})
    run.finish()
    assert program(text, elsewhere).wait(60) == 0


@pytest.mark.large
def test_a_silent_process_is_replaced_and_loses_nothing(here, tmp_path):
    run = grove.init(id="silent", dir=tmp_path / "first")
    run.log({"loss": 1})
    background = run._background
    assert background.drain()  # its thread has ended: it is silent from here on
    stored = tracked("silent")
    Run.objects.filter(pk=stored.pk).update(lease_expires=F("lease_expires") - timedelta(minutes=2))
    with Grove(here.address, here.token) as client:
        other = start("Oaks", None, None, "silent", None, None, None, None,
                                     tmp_path / "second", None, "must")  # fmt: skip
        other.log({"loss": 2})
        run.log({"loss": 3})
        with pytest.raises(Refused, match="another process"):
            background.sender.send_all()
        other.log({"loss": 4})
        other.finish()
        background.sender.send_all()
        assert client.run(str(stored.pk)).head_seq == stored.head_seq + 5
    assert logged_numbers(stored, "loss") == [1, 2, 4, 3]


@pytest.mark.large
def test_a_killed_process_loses_nothing_that_it_logged(here, tmp_path, capsys):
    text = """
        import grove, sys
        grove.init(id="killed", mode=sys.argv[1] if sys.argv[1:] else None)
        for value in range(1000):
            grove.log({"loss": value})
        print("logged", flush=True)
        sys.stdin.read()
    """
    process = program(text, tmp_path)
    assert process.stdout.readline() == "logged\n"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    for _ in range(2):
        assert main(["sync", str(tmp_path)]) == 0
    assert "nothing to send" in capsys.readouterr().out
    run = tracked("killed")
    assert logged_numbers(run, "loss") == list(range(1000))
    assert (run.state, run.error) == ("failed", "the program ended without finish()")
    with grove.init(id="killed", resume="auto", dir=tmp_path) as resumed:
        assert resumed.step == 1000
    assert tracked("killed").state == "finished"


@pytest.mark.large
def test_auto_resumes_what_was_interrupted_in_the_folder(here, tmp_path):
    text = "import grove, os\ngrove.init(); grove.log({'loss': 1}); os._exit(9)"
    assert program(text, tmp_path).wait(60) == 9
    with grove.init(resume="auto", dir=tmp_path) as run:
        assert run.resumed and run.step == 1
    assert Run.objects.count() == 1
    with grove.init(resume="auto", dir=tmp_path) as other:
        assert not other.resumed and other.id != run.id


@pytest.mark.large
def test_without_a_server_the_program_goes_on_and_is_sent_later(here, tmp_path, capsys):
    text = """
        import grove
        with grove.init(project="Oaks", id="alone", config={"lr": 1}) as run:
            for value in range(50):
                grove.log({"loss": value})
    """
    gone = {"GROVE_ADDRESS": "http://127.0.0.1:9"}
    process = program(text, tmp_path, **gone)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 0, stderr
    assert "the server cannot be reached" in stderr and f"grove sync {tmp_path}" in stderr
    assert main(["sync", str(tmp_path)]) == 0
    run = tracked("alone")
    assert logged_numbers(run, "loss") == list(range(50)) and run.state == "finished"
    assert run.tracking.config == {"lr": 1}


@pytest.mark.large
def test_an_offline_run_is_sent_once_however_often(here, tmp_path, capsys):
    with grove.init(id="offline", mode="offline") as run:
        assert run.offline
        grove.log({"loss": 1})
    assert not Run.objects.exists()
    (spool,) = (tmp_path / "logs").glob("*.spool")
    content = spool.read_bytes()
    spool.write_bytes(content + b'{"torn')  # the machine died while a record was written
    assert main(["sync", str(spool)]) == 0
    again = spool.with_name("copy.spool")  # the answer of the server was lost
    again.write_bytes(content)
    assert main(["sync", str(again)]) == 0
    assert logged_numbers(tracked("offline"), "loss") == [1]
    (tmp_path / "logs" / "other.spool").write_text("{}")
    assert main(["sync", str(tmp_path / "logs")]) == 1
    assert "this is no spool of grove" in capsys.readouterr().err


@pytest.mark.large
def test_a_full_disk_neither_stops_the_program_nor_loses_a_record(here, tmp_path):
    text = """
        import grove, resource
        grove.init(id="full", project="Oaks")
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        for value in range(2000):
            grove.log({"loss": value})
        grove.finish()
    """
    process = program(text, tmp_path)
    stderr = process.communicate(timeout=90)[1]
    assert process.returncode == 0, stderr
    assert "the spool cannot be written" in stderr and "complete" in stderr
    assert logged_numbers(tracked("full"), "loss") == list(range(2000))


@pytest.mark.large
@pytest.mark.parametrize(
    ("ending", "code", "error"),
    [
        ("raise ValueError('no more memory')", 1, "ValueError: no more memory"),
        ("sys.exit(3)", 3, "the program ended with exit code 3"),
        ("", 0, ""),
    ],
)
def test_a_run_ends_as_its_program_does(here, tmp_path, ending, code, error):
    text = f"import grove, sys\ngrove.init(id='ends')\ngrove.log({{'loss': 1}})\n{ending}"
    process = program(text, tmp_path)
    assert process.communicate(timeout=60) and process.returncode == code
    run = tracked("ends")
    assert (run.state, run.error) == ("failed" if code else "finished", error)
    raised = Event.objects.filter(run=run, kind="error").first()
    assert raised is None or "line 4" in raised.payload["traceback"]


@pytest.mark.large
def test_a_record_that_the_server_refuses_blocks_no_other(here):
    with grove.init(id="poison") as run:
        run.emit("metric.logged", {"step": 0, "texts": {"note": "x" * 70_000}})
        run.emit("no.such.kind", {})
        grove.log({"loss": 1})
    messages = [line["message"] for line in folded(tracked("poison"))["logs"]]
    assert "log texts of at most 65536 characters" in messages[0]
    assert "kept in the spool alone" in messages[1] and "no.such.kind" in messages[1]
    assert logged_numbers(tracked("poison"), "loss") == [1]


@pytest.mark.large
def test_what_a_run_has_no_room_for_blocks_no_other_record(here, monkeypatch):
    """A process that continues a run does not know what others left room for."""
    monkeypatch.setattr(logged_checks, "MOST_NAMES", 2)
    monkeypatch.setattr(logged_checks, "MOST_CONFIG_BYTES", 1000)
    for turn in range(2):
        with grove.init(id="full", resume="allow") as run:
            run.config.update({f"key {turn}": "x" * 600})
            for step in range(2):
                run.log({f"text {turn}.{step}": "x"})
                run.summary["note"] = "y" * 600
                run.log({"loss": turn + step})
    stored = tracked("full")
    assert logged_numbers(stored, "loss") == [0, 1, 1, 2] and stored.state == "finished"
    assert stored.tracking.config.keys() == {"key 0"}
    lost = Event.objects.filter(run=stored, payload__level="error").order_by("seq")
    assert ["config" in one.payload["message"] for one in lost] == [True, False, False]


@pytest.mark.large
def test_stop_reaches_the_program(here):
    run = grove.init(id="stops")
    with Grove(here.address, here.token) as client:
        client.stop(str(tracked("stops").pk))
        run.log({"loss": 1})
        eventually(lambda: run.stop_requested, "the request")
        run.finish()
    assert tracked("stops").state == "stopped"


@pytest.mark.large
def test_what_exceeds_a_bound_is_cut_and_says_so(here):
    long = "n" * 300
    with grove.init(id="bounds") as run:
        run.log({long: 1, "bad\\name\n": 2, "huge": 10**400, "text": "x" * 100_000})
        run.log({f"m{index}": index for index in range(5000)})
        run.log({"rows": grove.Table(columns=["a"], data=[["y" * 5000]] * 20_000)})
        run.log({"array": [[1, 2], [3, 4]], "none": None, "object": object()})
        nest = leaf = {}
        for _ in range(100):
            leaf["x"] = leaf = {}
        run.config.update({"nest": nest, "big": "z" * 3_000_000})
    run = tracked("bounds")
    assert not Event.objects.filter(run=run, payload__level="error").exists()
    logged = folded(run)["logged"]
    names = set(Metric.objects.filter(run=run).values_list("name", flat=True))
    assert "logged.bad__name_" not in names and "logged.bad_name_" in names
    assert len([name for name in names if name.startswith("logged.m")]) == 5000
    assert any(name.startswith("logged.nnn") and len(name) < 120 for name in names)
    assert logged["texts"]["text"]["value"].endswith("[100000 characters]")
    table = logged["tables"]["rows"]["value"]
    assert table["left_out"] + len(table["rows"]) == 20_000
    assert logged["nonfinite"]["huge"]["value"] == "inf"


@pytest.mark.large
def test_a_disabled_run_keeps_nothing(here, tmp_path):
    with grove.init(mode="disabled") as run:
        grove.log({"loss": 1})
        grove.config.lr = 2
        assert run.disabled and grove.config["lr"] == 2
    assert not Run.objects.exists() and not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([1],), "give a dictionary"),
        (({1: 2},), "the name 1 is no text"),
    ],
)
def test_a_call_that_is_wrong_says_what_is(tmp_path, arguments, error):
    with grove.init(mode="offline", dir=tmp_path) as run, pytest.raises(TypeError, match=error):
        run.log(*arguments)
    with pytest.raises(grove.NotStarted):
        grove.log({"early": 1})


def test_the_client_keeps_what_it_sends_within_the_server_s_bounds():
    for name in vars(limits):
        if name.isupper() and hasattr(logged_checks, name):
            assert getattr(limits, name) == getattr(logged_checks, name), name


@pytest.mark.large
def test_the_guide_works_as_it_is_written(here, tmp_path, monkeypatch):
    guide = (ROOT / "docs" / "guides" / "tracking.md").read_text()
    blocks = re.findall(
        r"<!-- tested by: [^\n]*works_as_it_is_written -->\n```(\w+)\n(.*?)```", guide, re.S
    )
    assert [kind for kind, _ in blocks] == ["sh", "python", "python", "sh"]
    monkeypatch.delenv("GROVE_DIR")
    monkeypatch.chdir(tmp_path)
    for kind, text in blocks[1:]:
        if kind == "python":
            given = {**os.environ, "PYTHONPATH": PATHS}
            subprocess.run([sys.executable, "-c", text], env=given, check=True, timeout=60)
        else:
            assert main(text.split()[1:]) == 0
    first, second = Run.objects.order_by("created")
    assert (first.experiment.name, first.state, first.step) == ("seed 3", "finished", 101)
    assert first.result["summary"] == {"best": 0.93} and first.tags == ["baseline"]
    assert second.tracking.key == "night-7" and logged_numbers(second, "loss") == [0.5]
