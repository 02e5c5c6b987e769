"""Tests of the real engine with a generator alongside its learner.

Weights are transferred and steps overlap; a stop and a resume between them lose nothing.
"""

import os
import subprocess
import sys

import pytest

from engine.config.schema import ConfigError, parse_config
from engine.events.log import EventLog, read_all
from engine.problems.source import load_problem_set
from engine.rollout.continuous import Membership
from engine.rollout.types import Stopped
from engine.training.compatibility import RunRecord
from engine.training.team import Team
from engine.training.trainer import Trainer
from tests.engine.rollout.scheduling import lags
from tests.helpers.policies import tiny_config
from tests.helpers.waiting import patience

pytestmark = pytest.mark.slow
DEADLINE = 400


def settings(compute=None, **training):
    """A starter that learns fast enough for every update to show."""
    own = {
        "sampling": {"max_prompt_tokens": 192, "max_new_tokens": 32},
        "optimizer": {"learning_rate": 1e-3, "schedule": "constant", "warmup_fraction": 0.0},
    }
    return tiny_config(
        agents=[{"name": "oak", "model": "starter:oak", **own}],
        problems={"seed": 3, "train": 60, "validation": 3, "test": 0},
        training={"steps": 5, "trees_per_step": 8, "validate_every": 3, "checkpoint_every": 9}
        | training,
        compute=compute or {},
    )


def train(folder, config, address):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(config.model_dump_json())
    with (folder / "engine.log").open("ab") as log:
        command = [sys.executable, "-m", "engine", "train", str(folder)]
        environment = os.environ | {"RAY_ADDRESS": address}
        code = subprocess.run(
            command, stdout=log, stderr=log, timeout=DEADLINE * patience(), env=environment
        )
    errors = [e.payload["message"] for e in read_all(folder) if e.kind == "error"]
    assert code.returncode == 0, errors or (folder / "engine.log").read_text()[-3000:]
    return list(read_all(folder))


def payloads(events, kind):
    return [event.payload for event in events if event.kind == kind]


def stopped_once_ahead(folder, config, address, step):
    """A run up to a stop after this step, when the next one has started but is not yet logged. Its
    Team is in this process, so that the stop hits that moment exactly."""
    folder.mkdir()
    (folder / "config.json").write_text(config.model_dump_json())
    problems = load_problem_set(config.problems)
    compute = config.compute.model_copy(update={"ray_address": address})
    team = Team(config.model_copy(update={"compute": compute}), lambda name, deadline: None)
    log = EventLog(folder)

    def should_stop():
        """Valid between two steps: within one, what has started ahead is the step's own."""
        return trainer.progress.step == step and bool(
            trainer.trees.growth.members(Membership.AHEAD)
        )

    try:
        team.ready()
        record = RunRecord.of(config, problems)
        trainer = Trainer(config, folder, log, team, problems, should_stop, record)
        with pytest.raises(Stopped):
            trainer.run()
        assert not trainer.trees.growth.in_flight
    finally:
        team.close()
        log.close()
    return list(read_all(folder))


def test_an_update_runs_while_the_next_step_is_generated(ray_address, tmp_path):
    """A stop when the next step has started ahead loses nothing and repeats nothing.

    Concurrent generation is not promised to be the same bits (see the refusals below). Promised are
    the same problems in their order, each learned from once, by weights whose age is recorded.
    """
    config = settings({"generators_per_agent": 1}, overlap=True, steps=6)
    before = stopped_once_ahead(tmp_path / "run", config, ray_address, 2)
    # Step 3 was in flight and is not logged; step 2 is nevertheless learned from and saved.
    assert {event.payload["step"] for event in before if event.kind == "tree.open"} == {1, 2}
    assert [u["step"] for u in payloads(before, "agent.update")] == [1, 2]
    assert [saved["step"] for saved in payloads(before, "checkpoint.saved")] == [2]

    events = train(tmp_path / "run", config, ray_address)
    assert events[: len(before)] == before
    assert [resumed["step"] for resumed in payloads(events, "run.resumed")] == [2]
    updates = payloads(events, "agent.update")
    assert [u["step"] for u in updates] == [1, 2, 3, 4, 5, 6]
    by_step = {u["step"]: u for u in updates}
    # Step 3 is generated again, with the weights of step 2's update. Validation of step 3 waits for
    # the nodes in flight: step 4 has the newest weights too.
    assert all(by_step[step]["lag"] == 0 for step in (1, 3, 4))
    # The generator's log-probabilities are those of the weights that it was sent ...
    assert [by_step[step]["version"] for step in (1, 3, 4)] == [1, 3, 4]
    assert all(by_step[step]["mismatch"] < 1e-4 for step in (1, 3, 4))
    # ... and of no others: nodes one update old are marked and corrected for. Other steps start
    # with weights of that age, and continue with newer ones if those arrive before their end.
    assert all(0 < by_step[step]["lag"] <= 1 for step in (2, 5, 6))
    assert all(by_step[step]["mismatch"] > 1e-4 for step in (2, 5, 6))
    # (`test_scheduling` has a scheduler for which it is not.)
    assert min(lags(events, (2, 5, 6))) < 1
    results = {event.tree: event.payload["step"] for event in events if event.kind == "tree.open"}
    nodes = [event for event in events if event.kind == "node.close"]
    for step, update in by_step.items():
        ages = [step - 1 - e.payload["policy_version"] for e in nodes if results[e.tree] == step]
        assert sum(ages) / len(ages) == update["lag"] and set(ages) <= {0, 1}
        first = {
            e.payload["policy_version"] for e in nodes if results[e.tree] == step and e.node == 1
        }
        # A step that starts ahead has first nodes of the older weights; those of its trees that
        # wait for a generator meanwhile may get the newer ones. No other step has older ones.
        assert min(first) == step - 1 - (step in (2, 5, 6))
    # Nothing is counted twice or lost.
    assert sum(u["nodes"] for u in updates) == len(nodes) == 6 * 8 * 4
    order = [
        (event.kind, event.payload["step"])
        for event in events
        if event.kind in ("step.start", "agent.update")
    ]
    for step in (2, 5, 6):
        assert order.index(("step.start", step)) < order.index(("agent.update", step - 1))
    # Each problem is used once, although a step's first nodes are requested before it starts.
    problems = load_problem_set(config.problems).numbered(range(6 * 8))
    assert [tree["problem"] for tree in payloads(events, "tree.open")] == [p.id for p in problems]
    opened = [(event.tree, event.node) for event in events if event.kind == "node.open"]
    assert len(set(opened)) == len(opened) == 6 * 8 * 4
    phases = payloads(events, "step.end")[1]["phases"]
    assert {"generate", "verify", "credit", "learn", "sync"} <= phases.keys()


@pytest.mark.large
def test_generation_runs_two_steps_ahead_and_new_weights_carry_answers_on(ray_address, tmp_path):
    """... and a stop inside of it all loses nothing and repeats nothing."""
    settings_of_run = {"overlap": True, "interrupt": True, "steps_ahead": 2, "steps": 8}
    config = settings(
        {"generators_per_agent": 1}, **settings_of_run, validate_every=99, checkpoint_every=99
    )
    before = stopped_once_ahead(tmp_path / "run", config, ray_address, 2)
    assert [saved["step"] for saved in payloads(before, "checkpoint.saved")] == [2]
    events = train(tmp_path / "run", config, ray_address)
    assert events[: len(before)] == before
    assert [resumed["step"] for resumed in payloads(events, "run.resumed")] == [2]
    updates = payloads(events, "agent.update")
    assert [u["step"] for u in updates] == list(range(1, 9))
    step_of = {event.tree: event.payload["step"] for event in events if event.kind == "tree.open"}
    closed = [event for event in events if event.kind == "node.close"]
    assert sum(u["nodes"] for u in updates) == len(closed) == 8 * 8 * 4
    problems = load_problem_set(config.problems).numbered(range(8 * 8))
    assert [tree["problem"] for tree in payloads(events, "tree.open")] == [p.id for p in problems]

    lags_of, oldest, in_pieces = {}, set(), 0
    for event in closed:
        node, step = event.payload, step_of[event.tree]
        pieces = node.get("pieces") or [[node["policy_version"], node["tokens"]]]
        versions = [version for version, _ in pieces]
        assert versions == sorted(set(versions)) and versions[0] == node["policy_version"]
        assert sum(tokens for _, tokens in pieces) == node["tokens"]
        # The update of a step is the one after `step - 1`: at most two versions newer.
        assert step - 3 <= versions[0] and versions[-1] <= step - 1
        oldest.add(step - 1 - versions[0])
        in_pieces += len(pieces) > 1
        lag = sum((step - 1 - version) * tokens for version, tokens in pieces) / node["tokens"]
        lags_of.setdefault(step, []).append(lag)
    assert in_pieces, "no answer was in flight when weights came"
    assert oldest == {0, 1, 2}
    for update in updates:
        mine = lags_of[update["step"]]
        assert update["lag"] == pytest.approx(sum(mine) / len(mine))
    # The first step, and the first one after the stop, are written by the newest weights alone.
    assert updates[0]["lag"] == updates[2]["lag"] == 0


@pytest.mark.parametrize(
    ("compute", "training", "reason"),
    [
        ({}, {"overlap": True}, "compute.generators_per_agent to 1"),
        ({"generators_per_agent": 1}, {"overlap": True, "max_staleness": 0}, "to 1 or more"),
        (
            {"generators_per_agent": 1, "deterministic": True},
            {"overlap": True},
            "training.overlap = True with compute.deterministic",
        ),
        ({"deterministic": True}, {"extra_trees": 2}, "training.extra_trees = 2"),
    ],
)
def test_settings_that_cannot_overlap_are_refused(compute, training, reason):
    agents = [{"name": "oak", "model": "starter:oak"}]
    with pytest.raises(ConfigError, match=reason):
        parse_config({"agents": agents, "compute": compute, "training": training})
