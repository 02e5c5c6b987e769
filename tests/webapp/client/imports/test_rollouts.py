"""Tests of rollouts of other trainers: their trees, refusals, and imports that are cut off."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import uuid

import httpx
import pytest

from tests.packaging.builds import ROOT
from tests.webapp.client.conftest import tracked
from webapp.client import Grove, Refused
from webapp.client.cli import main
from webapp.client.imports import rollouts
from webapp.client.imports.rollouts import Broken, events_of, rows_of, trees_of
from webapp.experiments.models import Run
from webapp.telemetry.models import Event
from webapp.telemetry.selectors import folded

GOOD = {"problem": "2 + 2?", "parent": None, "agent": "oak", "text": "5", "reward": 0, "tokens": 2}


def read(*lines):
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return trees_of(rows_of(encoded, "r.jsonl"))


def test_rollouts_of_a_step_and_a_problem_are_one_tree_by_their_parents():
    steps = read(
        GOOD,
        b"",
        {**GOOD, "parent": 1, "text": "4", "reward": 1.0, "agent": "fern"},
        {**GOOD, "step": 2, "id": "a"},
        {**GOOD, "problem": "Other"},
        {**GOOD, "step": 2, "parent": "a", "cut": True, "advantage": -0.5},
        {**GOOD, "step": 2, "group": "second", "id": "a", "reward": None},
    )
    assert list(steps) == [1, 2]
    (first, other), (second, apart) = steps[1], steps[2]
    assert [(node.parent, node.agent) for node in first.nodes] == [(0, "oak"), (1, "fern")]
    assert first.is_solved and not other.is_solved and other.problem == "Other"
    assert [node.parent for node in second.nodes] == [0, 1] and second.nodes[1].is_cut
    assert apart.nodes[0].reward is None
    events = list(events_of(steps, uuid.uuid4(), 1.0))
    ends = [one["payload"] for one in events if one["kind"] == "step.end"]
    assert [(end["nodes"], end["dropped_nodes"], end["solved"]) for end in ends] == [
        (3, 0, 0.5), (3, 1, 0.0),
    ]  # fmt: skip
    assert ends[0]["reward_by_agent"] == {"oak": 0.0, "fern": 1.0}
    depths = [one["payload"]["depth"] for one in events if one["kind"] == "node.open"]
    assert depths == [1, 2, 1, 1, 2, 1]
    assert [one["payload"] for one in events if one["kind"] == "node.credit"] == [
        {"shaped": 0.0, "advantage": -0.5}
    ]


@pytest.mark.parametrize("written", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_reward_that_python_writes_though_json_has_none_is_none(written):
    line = b'{"problem": "NaN?", "text": "a", "reward": %s}'
    (tree,) = read(line % written, line % b"1.5")[1]
    assert [node.reward for node in tree.nodes] == [None, 1.5] and tree.problem == "NaN?"
    with pytest.raises(Broken, match=r"r\.jsonl, line 1: this is no JSON"):
        read(line % b"NaN,,")


def test_completions_of_trl_are_the_groups_of_their_step():
    table = {"step": 2, "prompt": [{"role": "user", "content": "2 + 2?"}], "note": "x"}
    steps = read(
        {**table, "completion": "4", "right": 1.0, "short": 0.5, "advantage": 0.7},
        {**table, "completion": "5", "right": 0.0, "short": None, "advantage": -0.7},
        {**table, "completion": "?", "right": None, "short": None, "advantage": 0.0},
    )
    (tree,) = steps[2]
    assert tree.problem == "2 + 2?"
    assert [(n.text, n.reward, n.advantage, n.parent) for n in tree.nodes] == [
        ("4", 1.5, 0.7, 0), ("5", 0.0, -0.7, 0), ("?", None, 0.0, 0),
    ]  # fmt: skip


def test_a_trace_of_trackio_is_a_chain_of_its_answers():
    def says(role, content):
        return {"role": role, "content": content}

    chat = [says("user", "2 + 2?"), says("assistant", [{"type": "text", "text": "A tool."}])]
    chat += [says("tool", "4"), says("assistant", "It is 4.")]
    other = [says("system", "Be brief."), says("user", "1?"), says("assistant", None)]
    steps = read(
        {"messages": chat, "metadata": {"reward": 1, "step": 3, "agent": "oak", "tokens": 5}},
        {"messages": chat[:2], "metadata": {"reward": 0.25, "step": 3}},
        {"messages": other, "metadata": {"reward": None}},
    )
    (tree,) = steps[3]
    assert [(n.text, n.reward, n.parent, n.agent) for n in tree.nodes] == [
        ("A tool.", 1.0, 0, "oak"),
        ("tool: 4\n\nassistant: It is 4.", 1.0, 1, "oak"),
        ("A tool.", 0.25, 0, "policy"),
    ]
    (alone,) = steps[1]
    assert alone.problem == "system: Be brief.\n\nuser: 1?" and alone.nodes[0].reward is None


# As Trackio 0.43 exports it: test_trackio_traces.py has the library itself write such a trace.
EXPORTED = {
    "id": "r:1:rollout", "key": "rollout", "index": None, "run": "r", "run_id": "r", "step": 3,
    "timestamp": "2026-11-28T09:36:43+00:00", "spans": [], "metadata": {"agent": "oak"},
    "summary": {"output_tokens": 7, "span_count": 0},
    "messages": [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"function": {"name": "add", "arguments": "2, 2"}}, "odd"]},
        {"role": "tool", "content": "4"}, {"role": "assistant", "content": "4"},
    ],
}  # fmt: skip


def test_a_trace_that_trackio_exported_has_its_step_and_its_tokens():
    document = json.dumps({"project": "p", "run": None, "traces": [EXPORTED]}, indent=2)
    ways = [json.dumps(EXPORTED).encode()], document.encode().splitlines(keepends=True)
    for lines in ways:
        steps = rollouts.trees_of(rollouts.rows_of(lines, "traces.json"))
        ((step, (tree,)),) = steps.items()
        assert (step, tree.problem) == (3, "2 + 2?")
        assert [(n.text, n.reward, n.parent, n.agent, n.tokens) for n in tree.nodes] == [
            ("[add(2, 2)]\n[a tool]", None, 0, "oak", 0),
            ("tool: 4\n\nassistant: 4", None, 1, "oak", 7),
        ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{\n"traces": 3}', "traces.json: traces = 3: give a list of traces"),
        ('{\n"traces": [3]}', "traces.json, trace 1: give a JSON object, not 3"),
        ('{\n"traces": [{"messages": []}]}', "traces.json, trace 1: metadata = {}: it has no"),
        ('{\n"traces": [', "traces.json: this is no JSON"),
    ],
)
def test_a_broken_export_of_trackio_is_named(document, message):
    with pytest.raises(Broken) as refusal:
        rollouts.trees_of(rollouts.rows_of(document.encode().splitlines(), "traces.json"))
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"{", "r.jsonl, line 2: this is no JSON"),
        (b"\xff\xfe", "r.jsonl, line 2: this is no JSON"),
        (b"[" * 100_000, "r.jsonl, line 2: this is no JSON"),
        (b"[1]", "r.jsonl, line 2: give a JSON object, not [1]"),
        ({"problem": "a", "text": "b"}, "r.jsonl, line 2: the field reward is missing"),
        ({**GOOD, "rewards": 1}, "line 2: rewards = 1: there is no such field: give advantage, "),
        ({**GOOD, "reward": "1"}, "line 2: reward = '1': give a number, or null"),
        ({**GOOD, "reward": True}, "line 2: reward = True: give a number, or null"),
        ({**GOOD, "reward": 10**400}, "give a number, or null"),
        ({**GOOD, "problem": " "}, "line 2: problem = ' ': it is empty"),
        ({**GOOD, "text": 5}, "line 2: text = 5: give a text"),
        ({**GOOD, "tokens": -1}, "tokens = -1: give a whole number from 0 to 2147483647"),
        ({**GOOD, "step": 2**31}, "step = 2147483648: give a whole number"),
        ({**GOOD, "agent": "a\n"}, "agent = 'a\\n': give 1 to 100 printable characters"),
        ({**GOOD, "agent": " \u2800"}, "give 1 to 100 printable characters, not blanks alone"),
        ({**GOOD, "cut": 1}, "cut = 1: give true or false"),
        ({**GOOD, "parent": 2}, "parent = 2: no earlier rollout of this tree has this id"),
        ({**GOOD, "parent": [1]}, "parent = [1]: give a text or a whole number"),
        ({"messages": [], "metadata": {}}, "metadata = {}: it has no reward"),
        ({"messages": 3, "metadata": {"reward": 1}}, "messages = 3: give a text, or a list"),
        ({"messages": [], "metadata": {"reward": 1}}, "none of them has the role assistant"),
        ({"prompt": 4, "completion": "x"}, "prompt = 4: give a text, or a list of messages"),
        ({**GOOD, "id": 1}, "id = 1: the tree has a rollout of this id"),
    ],
)  # fmt: skip
def test_the_first_broken_rollout_is_named_by_line_field_value_and_remedy(broken, message):
    with pytest.raises(Broken) as refusal:
        read(GOOD, broken)
    assert message in str(refusal.value) and len(str(refusal.value)) < 400


def test_a_tree_that_no_page_could_draw_and_an_empty_file_are_refused():
    chain = [{**GOOD, "parent": n or None} for n in range(rollouts.DEEPEST + 1)]
    with pytest.raises(Broken, match="501 deep: 500 at most"):
        read(*chain)
    with pytest.raises(Broken, match=r"line 10001: .*10000 rollouts at most"):
        trees_of((f"r.jsonl, line {n}", GOOD, n) for n in range(1, rollouts.MOST_NODES + 2))
    with pytest.raises(Broken, match="there is none"):
        read(b"\n")


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.large
def test_a_file_is_imported_once_or_not_at_all(here, tmp_path, capsys):
    file = tmp_path / "grpo.jsonl"
    write(file, [GOOD, {**GOOD, "reward": "high"}])
    assert main(["import-rollouts", str(file)]) == 1
    assert "grpo.jsonl, line 2: reward = 'high': give a number" in capsys.readouterr().err
    assert not Run.objects.exists()
    write(file, [GOOD, {**GOOD, "parent": 1, "text": "4", "reward": 1}])
    for _ in range(2):
        assert main(["import-rollouts", str(file), "--id", "grpo-1"]) == 0
    assert "2 nodes in 1 trees of 1 steps, run " in capsys.readouterr().out
    run = tracked("grpo-1")
    assert (run.state, run.step, run.steps, Run.objects.count()) == ("finished", 1, 1, 1)
    assert run.experiment.name == "grpo" and run.head_seq == Event.objects.filter(run=run).count()
    (tree,) = folded(run)["trees"]
    assert [(node["parent"], node["program"], node["score"]) for node in tree["nodes"]] == [
        (0, "5", 0), (1, "4", 1),
    ]  # fmt: skip
    write(file, [GOOD])
    assert main(["import-rollouts", str(file), "--id", "grpo-1"]) == 1
    assert "has a run of this id" in capsys.readouterr().err


@pytest.mark.large
def test_an_import_that_is_killed_is_completed_by_the_same_command(here, tmp_path):
    file = tmp_path / "long.jsonl"
    write(file, [{**GOOD, "problem": f"Problem {n // 8}", "reward": n / 3000} for n in range(3000)])
    killed = """
        import os, pathlib, signal, sys
        from webapp.client import Grove, login
        from webapp.client.imports.verbs import import_rollouts
        from webapp.client.imports.whole import Target

        def die_at_the_second_batch(request):
            if request.url.path.endswith("/events") and sent:
                os.kill(os.getpid(), signal.SIGKILL)
            sent.extend([request] * request.url.path.endswith("/events"))

        sent, grove = [], Grove(*login.credentials())
        grove._http.event_hooks = {"request": [die_at_the_second_batch]}
        import_rollouts(grove, Target(id="long"), pathlib.Path(sys.argv[1]))
    """
    command = [sys.executable, "-c", textwrap.dedent(killed), str(file)]
    assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == -signal.SIGKILL
    half = tracked("long")
    assert half.state == "running" and 0 < half.head_seq < 6000
    assert main(["import-rollouts", str(file), "--id", "long"]) == 0
    run = tracked("long")
    seqs = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, run.head_seq + 1)) and run.state == "finished"
    assert Event.objects.filter(run=run, kind="node.close").count() == 3000


@pytest.mark.large
def test_rollouts_by_rest_are_a_run_or_a_refusal_that_names_them(here):
    rows = [{**GOOD, "parent": 1}, GOOD]
    with Grove(here.address, here.token) as client:
        project = here.cast.project.pk
        with pytest.raises(Refused, match=r"rollouts\.0\.parent = 1: no earlier rollout"):
            client.rest.add_rollouts(project=project, rollouts=rows)
        body = json.dumps({"project": project, "rollouts": [{**GOOD, "text": "\ud800"}]})
        headers = {"authorization": f"Bearer {here.token}", "content-type": "application/json"}
        address = f"{here.address}/api/v1/runs/rollouts"
        refused = httpx.post(address, content=body, headers=headers)
        assert refused.status_code == 422 and "rollouts.0.text" in refused.text
        assert not Run.objects.exists()
        again = [client.rest.add_rollouts(project=project, rollouts=rows[::-1]) for _ in range(2)]
        odd = [{**GOOD, "problem": "\ufeffAdd\u200b 2 and 2."}]
        hidden = client.rest.add_rollouts(project=project, rollouts=odd, id="hidden")
    assert again[0].id == again[1].id and again[0].state == hidden.state == "finished"
    (tree,) = folded(Run.objects.get(pk=again[0].id))["trees"]
    assert len(tree["nodes"]) == 2
    (tree,) = folded(Run.objects.get(pk=hidden.id))["trees"]
    assert tree["statement"] == odd[0]["problem"] and tree["problem"].startswith("Add 2 and 2. ")


@pytest.mark.large
def test_the_guide_works_as_it_is_written(here, tmp_path, monkeypatch):
    guide = (ROOT / "docs" / "guides" / "imports.md").read_text()
    rows = re.search(r"```json\n(.*?)```", guide, re.S)
    command = re.search(r"^grove (import-rollouts .*)$", guide, re.M)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rollouts.jsonl").write_text(rows[1])
    assert main(shlex.split(command[1])) == 0
    (tree,) = folded(Run.objects.get())["trees"]
    assert [(node["agent"], node["parent"]) for node in tree["nodes"]] == [
        ("policy", 0), ("critic", 1),
    ]  # fmt: skip
