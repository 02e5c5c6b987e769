"""Tests of the compacted log with which a page starts, the log itself, and one node of it."""

import json

import pytest

from tests.helpers.builders import a_held_run, an_event, some_events
from webapp.telemetry.fold import fold
from webapp.telemetry.ingest.ingest import ingest
from webapp.telemetry.selectors import PAGE, TAIL_EVENTS


def a_log(steps):
    """Two trees of two nodes per step, an update of an agent and a line of log."""
    events = [an_event(1, "run.planned", steps=steps, agents=["oak"], minutes=None)]

    def add(kind, **payload):
        events.append(an_event(len(events) + 1, kind, **payload))

    for step in range(1, steps + 1):
        add("step.start", step=step, trees=2)
        for _ in range(2):
            tree = len(events) + 1
            add("tree.open", tree=tree, step=step, problem="p", statement="Add.", difficulty=1)
            for node in (1, 2):
                opened = {"agent": "oak", "parent": node - 1, "depth": node, "draws": {}}
                add("node.open", tree=tree, node=node, **opened)
                add("node.close", tree=tree, node=node, program=f"x = {node}", score=1.0)
                add("node.credit", tree=tree, node=node, shaped=0.0, advantage=0.5)
            add("tree.close", tree=tree, nodes=2, solved=True)
        add("agent.update", agent="oak", step=step)
        add("log.line", level="info", message="on")
        add("step.end", step=step, solved=1.0, reward=1.0, training_seconds=1.0 * step, nodes=4)
    return events


@pytest.fixture
def run(cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, a_log(5))
    run.refresh_from_db()
    return run


@pytest.fixture
def bob(client, cast):
    client.force_login(cast.bob)
    return client


def state(client, run, **query):
    response = client.get(f"/api/v1/runs/{run.pk}/state", query)
    assert response.headers["Content-Type"] == "application/json"
    return response.json()


def test_a_state_keeps_all_steps_but_only_the_last_trees(bob, run):
    result = state(bob, run)
    assert result["seq"] == run.head_seq and result["epoch"] == str(run.epoch)
    kinds = [kind for _, _, kind, _ in result["events"]]
    assert kinds.count("step.end") == 5 and kinds.count("agent.update") == 5
    opened = [payload for _, _, kind, payload in result["events"] if kind == "tree.open"]
    assert [tree["step"] for tree in opened] == [4, 4, 5, 5]
    assert kinds.count("node.close") == 8


def test_a_state_is_in_order_without_doubles(bob, run):
    seqs = [event[0] for event in state(bob, run)["events"]]
    assert seqs == sorted(set(seqs))


def test_a_state_at_an_event_holds_no_later_event(bob, run):
    before = [e for e in a_log(5) if e.kind == "step.end"][2].seq
    result = state(bob, run, seq=before)
    assert result["seq"] == before and result["events"][-1][0] == before
    steps = [p["step"] for _, _, kind, p in result["events"] if kind == "tree.open"]
    assert steps == [2, 2, 3, 3]


def test_a_step_that_was_started_again_counts_once_in_a_state(bob, cast):
    run, fencing = a_held_run(cast)
    log = a_log(3)
    for kind, payload in (("run.resumed", {"step": 2}), ("step.start", {"step": 3, "trees": 2})):
        log.append(an_event(len(log) + 1, kind, **payload))
    ingest(run.pk, fencing, log)
    opened = [p["step"] for _, _, kind, p in state(bob, run)["events"] if kind == "tree.open"]
    assert 2 in opened and 1 not in opened


def test_a_state_beyond_the_head_is_that_of_the_head(bob, run):
    assert state(bob, run, seq=10**9) == state(bob, run)


def test_an_empty_log_has_an_empty_state(bob, cast):
    fresh, _ = a_held_run(cast)
    assert state(bob, fresh)["events"] == []


def test_of_log_lines_a_state_keeps_the_newest(bob, cast):
    run, fencing = a_held_run(cast)
    ingest(run.pk, fencing, some_events(1, TAIL_EVENTS + 30))
    seqs = [event[0] for event in state(bob, run)["events"]]
    assert seqs == list(range(31, TAIL_EVENTS + 31))


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_the_log_comes_as_lines_after_a_cursor(bob, cast):
    run, fencing = a_held_run(cast)
    last = 2 * PAGE + 7
    ingest(run.pk, fencing, some_events(1, last))
    response = bob.get(f"/api/v1/runs/{run.pk}/events?after=5")
    lines = b"".join(response).splitlines()
    assert [json.loads(line)[0] for line in lines] == list(range(6, last + 1))
    assert response.headers["Content-Type"] == "application/x-ndjson"


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous")
def test_a_window_of_the_log_holds_the_requested_events(bob, cast):
    run, fencing = a_held_run(cast)
    log = a_log(2)
    log.append(an_event(len(log) + 1, "node.text", tree=3, node=1, prompt="p", tokens=[]))
    ingest(run.pk, fencing, log)

    def seqs(**query):
        response = bob.get(f"/api/v1/runs/{run.pk}/events", query)
        return [json.loads(line)[0] for line in b"".join(response).splitlines()]

    assert seqs(after=3, until=9) == list(range(4, 10))
    assert seqs(topics="*,-node.text") == list(range(1, len(log)))
    closes = [event.seq for event in log if event.kind == "node.close"]
    assert seqs(topics="node.close") == closes


def test_a_state_folds_to_what_the_whole_log_folds_to(bob, cast):
    from tests.js.test_resumed import interrupted_log, on_the_wire

    run, fencing = a_held_run(cast)
    log = interrupted_log()
    ingest(run.pk, fencing, log)
    wire = [on_the_wire(event) for event in log]
    for seq in (0, 1, 40, 90, 150, 200, len(log)):
        body = bob.get(f"/api/v1/runs/{run.pk}/folded", {"seq": seq}).json()
        assert body.pop("epoch") == str(run.epoch)
        whole = fold(wire[:seq]).as_json()
        # The newest event may be one that a state omits.
        del body["time"], whole["time"]
        assert body == whole, seq


def test_an_old_tree_is_returned_whole(bob, run):
    log = a_log(5)
    tree = next(event.tree for event in log if event.kind == "tree.open")
    base = f"/api/v1/runs/{run.pk}/trees/{tree}"
    body = bob.get(base).json()
    assert [e[0] for e in body["events"]] == [event.seq for event in log if event.tree == tree]
    early = bob.get(base, {"seq": tree + 2}).json()
    assert [e[0] for e in early["events"]] == [tree, tree + 1, tree + 2]
    assert bob.get(f"/api/v1/runs/{run.pk}/trees/{tree + 1}").status_code == 404


def test_the_first_solved_node_of_a_run_is_a_moment(bob, run, cast):
    first = next(event for event in a_log(5) if event.kind == "node.close")
    body = bob.get(f"/api/v1/runs/{run.pk}/moments").json()
    expected = {"seq": first.seq, "tree": first.tree, "node": first.node}
    assert body == {"head": run.head_seq, "first_solved": expected}
    fresh, _ = a_held_run(cast)
    assert bob.get(f"/api/v1/runs/{fresh.pk}/moments").json()["first_solved"] is None


def test_a_node_is_returned_with_its_problem_and_its_parents_program(bob, run):
    tree = next(e.tree for e in a_log(5) if e.kind == "tree.open")
    body = bob.get(f"/api/v1/runs/{run.pk}/trees/{tree}/nodes/2").json()
    assert body["close"]["program"] == "x = 2" and body["credit"]["advantage"] == 0.5
    assert body["learned"] is None
    assert body["parent"]["program"] == "x = 1" and body["problem"]["statement"] == "Add."
    child_of_root = bob.get(f"/api/v1/runs/{run.pk}/trees/{tree}/nodes/1").json()
    assert child_of_root["parent"] is None


def test_a_missing_node_returns_not_found(bob, run):
    assert bob.get(f"/api/v1/runs/{run.pk}/trees/1/nodes/9").status_code == 404
    assert bob.get(f"/api/v1/runs/{run.pk}/trees/x/nodes/9").status_code == 404


def test_a_node_is_returned_with_the_token_statistics_of_its_update(bob, cast):
    run, fencing = a_held_run(cast)
    log = a_log(1)
    tree = next(e.tree for e in log if e.kind == "tree.open")
    nodes = [{"node": node, "entropy": [0.5], "ratio": [1.0 + node]} for node in (1, 2)]
    about = {"agent": "oak", "step": 1, "version": 1}
    log.append(an_event(len(log) + 1, "tree.learned", tree=tree, **about, nodes=nodes))
    ingest(run.pk, fencing, log)
    body = bob.get(f"/api/v1/runs/{run.pk}/trees/{tree}/nodes/2").json()
    assert body["learned"] == {**about, "entropy": [0.5], "ratio": [3.0]}
    kinds = {event[2] for event in bob.get(f"/api/v1/runs/{run.pk}/state").json()["events"]}
    assert "tree.learned" not in kinds, "it is read by node"


@pytest.mark.parametrize("step", [1, 3, 5])
def test_the_trees_of_any_step_can_be_had_at_any_moment(bob, run, step):
    log = a_log(5)
    mine = {e.tree for e in log if e.kind == "tree.open" and e.payload["step"] == step}
    base = f"/api/v1/runs/{run.pk}/steps/{step}/trees"
    results = [e[0] for e in bob.get(base).json()["events"]]
    assert results == [e.seq for e in log if e.tree in mine]
    until = results[len(results) // 2]
    assert [e[0] for e in bob.get(base, {"seq": until}).json()["events"]] == [
        seq for seq in results if seq <= until
    ]
    assert bob.get(f"/api/v1/runs/{run.pk}/steps/99/trees").json()["events"] == []


def test_a_resumed_step_has_the_trees_of_its_last_start(bob, cast):
    from tests.js.test_resumed import interrupted_log

    run, fencing = a_held_run(cast)
    log = interrupted_log()
    ingest(run.pk, fencing, log)
    resumed = next(e.seq for e in log if e.kind == "run.resumed")
    body = bob.get(f"/api/v1/runs/{run.pk}/steps/3/trees").json()["events"]
    opened = [e[0] for e in body if e[2] == "tree.open"]
    assert len(opened) == 3 and min(opened) > resumed
    before = bob.get(f"/api/v1/runs/{run.pk}/steps/3/trees", {"seq": resumed - 1}).json()
    assert len([e for e in before["events"] if e[2] == "tree.open"]) == 3


def test_a_cursor_beyond_all_logs_is_answered(bob, run):
    """Responds with an empty page or a refusal that names the field, never with a server error."""
    paths = ("state?seq={}", "folded?seq={}", "steps/1/trees?seq={}", "steps/{}/trees",
             "trees/{}", "trees/3?seq={}", "trees/3/nodes/{}")  # fmt: skip
    for path in paths:
        for number in (2**63, 10**30):
            answer = bob.get(f"/api/v1/runs/{run.pk}/{path.format(number)}")
            assert answer.status_code in (200, 404, 422), (path, answer.content)
