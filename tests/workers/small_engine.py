"""Script of the small engine of `engines.py`. Arguments: OPTIONS RUN_DIR --lease-seconds N."""

import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from engine.events import vocabulary as ev
from engine.events.log import EventLog
from engine.run.spans import ended as ended_calls
from engine.run.spans import phase_span, run_span, step_span, submitted

GO = "go"
"""The file that ends a hold: all, or those up to the step that it names."""


def options_of(text):
    pairs = dict(pair.split("=") for pair in text.split(",") if "=" in pair)
    return {
        "steps": int(pairs.get("steps", 3)),
        "pause": float(pairs.get("pause", 0.0)),
        "crash_at": int(pairs.get("crash_at", 0)),
        "crash_always": int(pairs.get("crash_always", 0)),
        "fail": pairs.get("fail", ""),
        "refuse": pairs.get("refuse", ""),
        "children": int(pairs.get("children", 0)),
        "deaf": int(pairs.get("deaf", 0)),
        "hold_at": int(pairs.get("hold_at", 0)),
        "hold_every": int(pairs.get("hold_every", 0)),
        "learns": int(pairs.get("learns", 0)),
        "hangs": pairs.get("hangs", ""),
        "forks": int(pairs.get("forks", 0)),
        "private_mb": int(pairs.get("private_mb", 0)),
        "shared_mb": int(pairs.get("shared_mb", 0)),
    }


def main(text, run_dir, lease_seconds):
    options = options_of(text)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: None if options["deaf"] else stop.append(True))
    log = EventLog(run_dir)
    for _ in range(options["children"]):
        # In sessions of their own, so that no signal to the engine's group reaches them.
        subprocess.Popen(["sleep", "86400"], start_new_session=True)
    checkpoint = run_dir / "checkpoint"
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    fresh = log.seq == 0
    log.append(ev.RunStateChanged(state=ev.RunState.STARTING))
    if options["refuse"]:
        log.append(ev.ErrorRaised(message=options["refuse"]))
        log.append(ev.RunStateChanged(state=ev.RunState.FAILED, reason=options["refuse"]))
        sys.exit(2)
    if options["hangs"]:
        if options["hangs"] != "silently":
            log.append(ev.RunWaiting(options["hangs"], 300.0))
        time.sleep(86_400)
    if not fresh:
        log.append(ev.RunResumed(step=done))
    log.append(ev.RunStateChanged(state=ev.RunState.RUNNING))
    if options["fail"]:
        log.append(ev.ErrorRaised(message=options["fail"]))
        raise RuntimeError("teardown noise")
    if options["private_mb"] or options["shared_mb"]:
        allocate(run_dir, options["forks"], options["private_mb"], options["shared_mb"])
    if done == 0:
        log.append(tested(0, 0.2))
    problems = train_problems(run_dir) if options["learns"] else ["p"]
    for step in range(done + 1, options["steps"] + 1):
        log.append(ev.StepStarted(step=step, trees=1))
        with step_span(step), phase_span("generate"):
            call = submitted(object(), "generate", "answer", agents="oak")
            grow_tree(log, step, problems[step % len(problems)])
            ended_calls([call])
        time.sleep(options["pause"])
        every = options["hold_every"]
        if step == options["hold_at"] or (every and step % every == 0):
            hold(run_dir, step, stop, lease_seconds)
        crash_now = options["crash_at"] == step and not (run_dir / "crashed").exists()
        if crash_now or options["crash_always"] == step:
            (run_dir / "crashed").touch()
            raise ValueError(f"step {step} went wrong")
        log.append(ended(step))
        draft = checkpoint.with_suffix(".draft")  # a kill may come between any two lines
        draft.write_text(str(step))
        draft.replace(checkpoint)
        log.append(ev.CheckpointSaved(step=step, path=f"checkpoints/{step}"))
        if stop:
            log.append(ev.RunStateChanged(state=ev.RunState.STOPPED))
            sys.exit(3)
        if has_lapsed(run_dir, lease_seconds):
            sys.exit(4)
    log.append(tested(options["steps"], 0.6))
    models = weights(run_dir) if options["learns"] else {}
    final = {"path": "checkpoints/last", "final": True, "models": models}
    log.append(ev.CheckpointSaved(step=options["steps"], **final))
    log.append(ev.RunStateChanged(state=ev.RunState.FINISHED))


def allocate(run_dir, forks, private_mb, shared_mb):
    """Takes memory until released: of one process or, with `forks`, of each of these, and some that
    all of them use."""
    shared = mmap.mmap(-1, max(1, shared_mb) << 20)
    shared.write(b"x" * (shared_mb << 20))
    for number in range(forks):
        if os.fork() == 0:
            held = use(run_dir / f"uses-{number}", private_mb, shared)
            time.sleep(86_400)
    held = None if forks else use(run_dir / "uses", private_mb, shared)
    while not (run_dir / GO).exists():
        time.sleep(0.02)
    del held


def use(mark, private_mb, shared):
    own = b"x" * (private_mb << 20)
    sum(shared[:: mmap.PAGESIZE])
    mark.touch()
    return own


def hold(run_dir, step, stop, lease_seconds):
    """Waits within a step until it is released or must end."""
    while not (stop or is_released(run_dir, step) or has_lapsed(run_dir, lease_seconds)):
        time.sleep(0.02)


def is_released(run_dir, step):
    go = run_dir / GO
    return go.exists() and step <= int(go.read_text() or step)


def has_lapsed(run_dir, lease_seconds):
    return time.time() - (run_dir / "lease").stat().st_mtime > lease_seconds


def train_problems(run_dir):
    """Ids of the problems to learn from, read as the engine reads them."""
    from engine.config.schema import read_config
    from engine.problems.source import load_problem_set

    config = read_config(run_dir / "config.json")
    return [problem.id for problem in load_problem_set(config.problems).train]


def weights(run_dir):
    """Writes the trained weights as files of one agent; returns their directory by agent."""
    import numpy
    from safetensors.numpy import save_file

    folder = run_dir / "models" / "oak"
    folder.mkdir(parents=True)
    save_file({"embed": numpy.zeros(6, dtype=numpy.float32)}, folder / "model.safetensors")
    return {"oak": "models/oak"}


def grow_tree(log, step, problem):
    tree = log.seq + 1
    log.append(ev.TreeOpened(step=step, problem=problem, statement="Return x."), tree=tree)
    for node in (1, 2):
        opened = ev.NodeOpened(agent="oak", parent=node - 1, depth=node, draws={})
        log.append(opened, tree=tree, node=node)
        closed = ev.NodeClosed(
            program="def f(x): return x", verdict=ev.Verdict.PASSED, score=1.0, fraction=1.0,
            tests=[], tokens=10, stop=ev.StopReason.END_OF_TEXT, mean_logprob=-0.1,
            policy_version=step, seconds=0.01,
        )  # fmt: skip
        log.append(closed, tree=tree, node=node)


def tested(step, score):
    return ev.EvaluationResult(
        step=step, split="test", agents={"oak": score, "fern": score + 0.1},
        standard_errors={"oak": 0.02, "fern": 0.02}, problems=300, tree=score + 0.2,
        samples=score + 0.15, tree_nodes=8, rollouts=100, tokens=1000,
    )  # fmt: skip


def ended(step):
    return ev.StepEnded(
        step=step, seconds=0.1, phases={"generate": 0.1}, nodes=8, reward=0.5, solved=0.5,
        node_share={"oak": 1.0}, reward_by_agent={"oak": 0.5}, filtered_trees=0,
        dropped_nodes=0, tokens=80, training_seconds=0.1 * step,
    )  # fmt: skip


if __name__ == "__main__":
    with run_span("train", Path(sys.argv[2]).name):
        main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[4]))
