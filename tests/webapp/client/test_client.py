"""Tests of the Python client, the command and the guide's tour against the real server."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import httpx
import psycopg
import pytest
from django.db import connection

from engine.events.log import EventLog
from engine.events.vocabulary import LogLine, RunStateChanged, StepStarted
from engine.problems.load import load_dataset
from engine.problems.records import record
from tests.engine.problems import rows
from tests.helpers.builders import (
    A_PROBLEM,
    a_held_run,
    a_model_folder,
    a_token,
    an_event,
    some_events,
)
from tests.helpers.datasets import lines_of, some_problems
from tests.helpers.gguf_uploads import a_header, a_tiny_gguf
from tests.helpers.waiting import patience
from tests.webapp.searches.test_searches import ANSWER
from webapp.accounts.models import Scope
from webapp.client import Grove, Refused
from webapp.client.cli import main
from webapp.datasets.parsing import parse
from webapp.experiments.models import Run
from webapp.experiments.scheduling.leases import take_lease
from webapp.experiments.services import mark_finished, mark_starting
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.models import Event
from workers.jobs.model_imports import ModelImportJob

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def grove(site):
    with Grove(site.address, site.token) as grove:
        yield grove


@pytest.fixture
def command(site, monkeypatch, tmp_path, capsys):
    """Runs the command with the site's token; returns (exit status, output)."""
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))

    def run(*arguments):
        status = main(list(map(str, arguments)))
        return status, capsys.readouterr().out

    return run


def a_log(directory, last):
    """Log of an external engine that ran and finished."""
    directory.mkdir()
    log = EventLog(directory)
    log.append(RunStateChanged(state="running"))
    for number in range(2, last):
        log.append(LogLine(level="info", message=f"line {number}"))
    log.append(RunStateChanged(state="finished"))
    log.close()
    return directory


def test_a_search_prints_the_program_that_was_chosen(command, grove, site, tmp_path):
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(record(A_PROBLEM)))
    requested = ("search", site.cast.project.pk, file, "--team", "starter:oak", "--key", "s-1")
    requested += ("--set", "search.nodes_per_tree=3")
    search = grove.create_search(
        site.cast.project.pk, ["starter:oak"], record(A_PROBLEM), {"search.nodes_per_tree": 3},
        key="s-1",
    )  # fmt: skip
    assert grove.answer(search.id) is None and [s.id for s in grove.searches(search.project)]
    run = Run.objects.get(pk=search.id)
    fencing = take_lease(run.pk, "worker", 60)
    mark_starting(run.pk, fencing)
    ingest(run.pk, fencing, [an_event(1, "search.answer", node=2, **ANSWER)])
    mark_finished(run.pk, fencing)
    status, said = command(*requested)
    assert (status, said) == (0, ANSWER["program"])
    assert grove.answer(search.id).rule == ANSWER["rule"]


def test_a_run_is_made_once_read_and_stopped(grove, site):
    (project,) = grove.projects()
    requested = (project.id, "mars2", {"training.steps": 3}, "Night")
    run = grove.create_run(*requested, key="night-1")
    assert grove.create_run(*requested, key="night-1").id == run.id
    assert run.steps == 3 and run.config["training"]["steps"] == 3
    assert [one.id for one in grove.runs(name="night")] == [run.id]
    assert grove.stop(run.id).state == "stopped" and grove.run(run.id).is_over
    assert grove.resume(run.id).state == "queued"


def test_a_list_is_walked_to_its_end(grove, site):
    made = {grove.create_run(site.cast.project.pk, "mars2").id for _ in range(3)}
    assert {run.id for run in grove.runs(limit=2)} == made


def test_a_refusal_names_field_value_and_remedy(grove, site):
    with pytest.raises(Refused, match=r"search.nodes_per_tree = 0: .*greater") as refused:
        grove.create_run(site.cast.project.pk, "mars2", {"search.nodes_per_tree": 0})
    assert refused.value.problem.status == 422
    with pytest.raises(Refused, match="404"):
        grove.run("00000000-0000-0000-0000-000000000000")


def test_a_run_is_watched_to_its_end(grove, site):
    run, fencing = a_held_run(site.cast)
    ingest(run.pk, fencing, some_events(1, 2))
    seen = []
    for event in grove.watch(str(run.pk), after=1):
        seen.append(event.seq)
        if event.seq == 2:
            ingest(run.pk, fencing, some_events(3, 4))
            mark_finished(run.pk, fencing)
    assert seen == [2, 3, 4]
    assert [event.seq for event in grove.events(str(run.pk), after=2)] == [3, 4]


def test_a_log_elsewhere_is_pushed_in_parts_and_once(command, site, tmp_path, monkeypatch):
    monkeypatch.setattr("webapp.client.pushing.BATCH_LINES", 4)
    directory = a_log(tmp_path / "run", 10)
    requested = ("push", directory, "--project", site.cast.project.pk, "--recipe", "mars2")
    status, printed = command(*requested, "--follow")
    run = Run.objects.get(pk=printed.strip())
    assert status == 0 and run.state == "finished" and run.head_seq == 10
    again = command("push", directory, "--run", run.pk)
    assert again[0] == 0 and Event.objects.filter(run=run).count() == 10


def test_a_push_without_a_log_makes_no_run(command, site, tmp_path):
    before = Run.objects.count()
    status, output = command(
        "push", tmp_path, "--project", site.cast.project.pk, "--recipe", "mars2"
    )
    assert status == 1 and not output and Run.objects.count() == before


def test_a_push_continues_at_the_servers_offset(grove, site, tmp_path):
    from webapp.client.pushing import push

    run = grove.create_run(site.cast.project.pk, "mars2", outside=True)
    directory = tmp_path / "run"
    directory.mkdir()
    log = EventLog(directory)
    log.append(RunStateChanged(state="running"))
    assert push(grove, run.id, directory, follow=False).head_seq == 1
    log.append(StepStarted(step=1, trees=2))
    log.close()
    with (directory / "events.jsonl").open("ab") as torn:
        torn.write(b'{"seq": 3')
    assert push(grove, run.id, directory, follow=False).head_seq == 2
    with pytest.raises(Refused) as refused:
        grove.send(run.id, [(directory / "events.jsonl").read_bytes().splitlines()[0]
                            .replace(b'"seq":1', b'"seq":9')])  # fmt: skip
    assert refused.value.problem.expected_seq == 3


def test_a_table_is_exported_to_a_file(command, exporter, site, tmp_path):
    run, fencing = a_held_run(site.cast)
    ingest(run.pk, fencing, [an_event(1, "system.sample", cpu_percent=0.1, memory_mb=1.0)])
    file = tmp_path / "metrics.csv"
    status, printed = command("export", "metrics", file, "--run", run.pk)
    assert status == 0 and "2 rows" in printed and file.read_text().count("\n") == 3
    assert command("export", "runs", tmp_path / "runs.xlsx", "--run", run.pk)[0] == 1
    requested = ("export", "runs", tmp_path / "runs.jsonl", "--project", site.cast.project.pk)
    assert command(*requested, "--state", "finished") == (0, f"{requested[2]} contains 0 rows\n")
    assert command(*requested, "--state", "odd")[0] == 1
    assert not list(tmp_path.glob(".*.partial"))


def test_the_exit_status_of_the_command_reports_the_error(command, site, monkeypatch):
    assert command("stop", "nonsense")[0] == 1
    monkeypatch.setenv("GROVE_ADDRESS", "http://127.0.0.1:1")
    assert command("runs")[0] == 3
    monkeypatch.delenv("GROVE_TOKEN")
    assert command("runs")[0] == 1


def test_login_keeps_a_token_that_works_where_only_its_owner_reads(command, site, monkeypatch):
    import io

    monkeypatch.delenv("GROVE_TOKEN")
    monkeypatch.setattr("sys.stdin", io.StringIO(site.token + "\n"))
    assert command("login", site.address)[0] == 0
    (file,) = Path(os.environ["XDG_CONFIG_HOME"]).rglob("login.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert command("runs")[0] == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("grove_wrong\n"))
    assert command("login", site.address)[0] == 1


def test_the_client_needs_no_django():
    code = "import sys, webapp.client.cli; assert 'django' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=30 * patience())


def test_the_tour_of_the_guide_works_as_it_is_written(site, exporter, tmp_path):
    guide = (ROOT / "docs" / "guides" / "rest.md").read_text("utf-8")
    tour = re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)[1]
    grove = tmp_path / "grove"
    grove.write_text(f'#!/bin/sh\nexec {sys.executable} -m webapp.client "$@"\n')
    grove.chmod(0o755)
    environment = {
        **os.environ,
        **site.environment,
        "PROJECT": str(site.cast.project.pk),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        ["bash", "-euc", tour], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=60 * patience(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Oaks" in done.stdout and "Night #1" in done.stdout
    assert set(Run.objects.values_list("state", flat=True)) == {"queued", "stopped"}
    assert (tmp_path / "night-8.ndjson").exists()
    assert "Night" in (tmp_path / "runs.csv").read_text()
    assert (tmp_path / "metrics.parquet").read_bytes().startswith(b"PAR1")


def test_errors_without_problem_details_keep_their_status_or_cause(site):
    with Grove(site.address + "/nowhere", site.token) as grove, pytest.raises(Refused, match="404"):
        grove.run("x")
    with Grove("http://127.0.0.1:1", site.token) as grove, pytest.raises(httpx.TransportError):
        grove.run("x")


def test_a_dataset_goes_up_and_comes_down(command, site, tmp_path, var_directory):
    (tmp_path / "trees.jsonl").write_bytes(lines_of(some_problems()))
    pushed = ("push-dataset", site.cast.project.pk, "trees", tmp_path / "trees.jsonl")
    status, version = command(*pushed)
    assert status == 0 and command(*pushed) == (0, version), "the same problems, the same version"
    assert command("pull-dataset", version.strip(), tmp_path / "down.jsonl")[0] == 0
    assert load_dataset(tmp_path / "down.jsonl").problems == some_problems()
    assert command("push-dataset", site.cast.project.pk, "../up", tmp_path / "trees.jsonl")[0] == 1
    assert not (tmp_path / "down.jsonl.partial").exists()


def test_a_bad_line_of_a_pushed_dataset_is_said_as_the_command_line_says_it(
    command, site, tmp_path, var_directory, capsys
):
    file = tmp_path / "torn.jsonl"
    file.write_text(f"{json.dumps(rows.MBPP)}\n{json.dumps(rows.MBPP_SANITIZED)[:-30]}\n")
    (issue,) = load_dataset(file).left_out
    said = str(issue).replace(f"{tmp_path}/", "")
    assert main(["push-dataset", str(site.cast.project.pk), "torn", str(file)]) == 0
    assert f"left out: {said}\n" in capsys.readouterr().err


def test_a_dataset_waits_for_its_turn_and_its_place_is_shown(grove, site, tmp_path, var_directory):
    (tmp_path / "trees.jsonl").write_bytes(lines_of(some_problems()))
    places = []

    def shown(place):
        places.append((place.place, place.waiting))
        others.close()  # their slots are free

    grove.on_waiting = shown
    with psycopg.connect(**connection.get_connection_params()) as others:
        for slot in range(parse.QUEUE.slots):
            others.execute("SELECT pg_advisory_xact_lock(%s, %s)", [parse.QUEUE.lock, slot])
        version = grove.add_dataset(site.cast.project.pk, "trees", [tmp_path / "trees.jsonl"])
    assert places == [(1, 1)] and version.statistics["problems"] == len(some_problems())


@pytest.mark.large
def test_a_folder_is_pushed_as_a_version_promoted_and_pulled_again(
    command, site, tmp_path, monkeypatch, var_directory
):
    scopes = (Scope.RUNS_READ, Scope.REGISTRY_WRITE, Scope.REGISTRY_PROMOTE)
    token = a_token(site.cast.mia, site.cast.project, *scopes)
    monkeypatch.setenv("GROVE_TOKEN", token)
    folder = a_model_folder(tmp_path / "elm")
    push = ("push-model", folder, "--project", site.cast.project.pk)
    status, output = command(*push)
    assert status == 0 and output.startswith("elm v1 ")
    assert command(*push) == (0, output), "the same files are the same version"
    with Grove(site.address, token) as grove:
        (model,) = grove.models(name="elm")
        assert grove.promote(model.id, "champion", 1, "It is the first.")["state"] == "done"
    archive = tmp_path / "elm.zip"
    assert command("pull-model", model.id, 1, archive)[0] == 0
    with zipfile.ZipFile(archive) as made:
        assert made.read("config.json") == (folder / "config.json").read_bytes()
    (folder / "model.safetensors").write_bytes(b"\x80\x04.")
    assert command(*push)[0] == 1
    assert command(*push, "--name", "ash")[0] == 1, "and no model of the name stays"
    assert site.cast.project.models.get().versions.count() == 1


@pytest.fixture
def importing():
    """A worker's thread that does imports."""
    ended = Flag()

    def work():
        while not ended.wait(0.2):
            ModelImportJob().do_one()
        connection.close()

    thread = Thread(target=work, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join(60 * patience())


@pytest.mark.large
def test_a_gguf_file_is_pushed_and_followed_until_it_is_a_version(
    command, site, tmp_path, var_directory, importing, monkeypatch, capsys
):
    scopes = (Scope.RUNS_READ, Scope.REGISTRY_WRITE)
    monkeypatch.setenv("GROVE_TOKEN", a_token(site.cast.bob, site.cast.project, *scopes))
    file = a_tiny_gguf(tmp_path / "tiny-1.Q4_1.gguf")
    push = ("push-model", file, "--project", site.cast.project.pk)
    status, output = command(*push)
    assert status == 0 and output.startswith("tiny-1.Q4_1 v1 ")
    assert command(*push) == (0, output), "the same file is the same version"
    assert command(*push, "--parent", 1)[0] == 1
    file.write_bytes(a_header())
    assert main([str(word) for word in push]) == 1
    assert "tiny-1.Q4_1.gguf: " in capsys.readouterr().err, "the cause"
    file.write_bytes(b"PK")
    assert command(*push)[0] == 1 and site.cast.project.models.get().versions.count() == 1
