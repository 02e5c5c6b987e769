"""Tests of checkpoints: whole or absent, newest and best kept, damage reported and skipped."""

import json
import shutil
import subprocess
import sys
import time

import pytest

from engine.run.checkpoint import MANIFEST, STATE, CheckpointError, Checkpoints
from tests.helpers.luck import luck


def write_weights(folder):
    (folder / "oak").mkdir()
    (folder / "oak" / "model.safetensors").write_bytes(b"weights" * 100)


def saved(run_dir, *steps, keep=2, scores=None):
    """Checkpoints of these steps, with the validation scores given by step."""
    checkpoints = Checkpoints(run_dir, keep)
    for step in steps:
        checkpoints.save(step, {"n": step}, write_weights, (scores or {}).get(step))
    return checkpoints


def names(checkpoints):
    return sorted(path.name for path in checkpoints.folder.iterdir())


def test_only_the_newest_checkpoints_stay(tmp_path):
    checkpoints = saved(tmp_path, 5, 10, 15)
    assert names(checkpoints) == ["step-000010", "step-000015"]
    result = checkpoints.latest()
    assert (result.path.name, result.step, result.state) == (
        "step-000015",
        15,
        {"step": 15, "n": 15},
    )
    assert result.damaged == []


def test_the_newest_checkpoint_has_the_highest_step_as_a_number(tmp_path):
    checkpoints = saved(tmp_path, 999_999, 1_000_000)
    assert checkpoints.latest().step == 1_000_000


def test_the_best_stays_too_and_of_equals_the_latest(tmp_path):
    scores = {1: 0.5, 2: 0.75, 3: 0.25, 5: 0.5}
    checkpoints = saved(tmp_path, 1, 2, 3, 4, 5, keep=1, scores=scores)
    assert names(checkpoints) == ["step-000002", "step-000005"]
    assert (checkpoints.best().step, checkpoints.best().validation) == (2, 0.75)
    saved(tmp_path, 6, 7, keep=1, scores={6: 0.75})
    assert names(checkpoints) == ["step-000006", "step-000007"]
    assert checkpoints.latest().validation is None


def test_a_checkpoint_that_was_cut_off_is_not_one_and_its_rest_is_swept_away(tmp_path):
    checkpoints = saved(tmp_path, 5)

    def cut_off(folder):
        (folder / "half").write_text("h")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(10, {}, cut_off)
    partial, whole = names(checkpoints)
    assert partial.startswith("partial-10-") and whole == "step-000005"
    assert checkpoints.latest().step == 5
    assert names(checkpoints) == ["step-000005"]
    assert saved(tmp_path, 10).latest().step == 10


def truncate(checkpoint):
    weights = checkpoint / "oak" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])


def flip_a_bit(checkpoint):
    weights = checkpoint / "oak" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[50] ^= 1
    weights.write_bytes(data)


DAMAGES = {
    "oak/model.safetensors has 100 bytes, 700 were written": truncate,
    "oak/model.safetensors holds other bytes than were written": flip_a_bit,
    "oak/model.safetensors is missing": lambda path: shutil.rmtree(path / "oak"),
    "state.json is missing": lambda path: (path / STATE).unlink(),
    "manifest.json is missing": lambda path: (path / MANIFEST).unlink(),
    "manifest.json cannot be read": lambda path: (path / MANIFEST).write_text('{"files": '),
    "its `files` is no object": lambda path: (path / MANIFEST).write_text('{"files": [1]}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_taken(tmp_path, damage):
    checkpoints = saved(tmp_path, 5, 10)
    DAMAGES[damage](tmp_path / "checkpoints" / "step-000010")
    result = checkpoints.latest()
    assert result.step == 5
    (problem,) = result.damaged
    assert problem.startswith("step-000010/") and damage in problem
    assert names(checkpoints) == ["damaged-step-000010", "step-000005"]
    assert saved(tmp_path, 10).latest().damaged == []


def test_where_no_checkpoint_is_whole_nothing_is_begun_anew_in_silence(tmp_path):
    checkpoints = saved(tmp_path, 5, 10)
    for path in checkpoints.list():
        truncate(path)
    with pytest.raises(
        CheckpointError, match=r"no checkpoint is whole: step-000010/.*step-000005/"
    ):
        checkpoints.latest()
    assert names(checkpoints) == ["step-000005", "step-000010"]


def test_the_manifest_lists_every_file(tmp_path):
    (path,) = saved(tmp_path, 5).list()
    manifest = json.loads((path / MANIFEST).read_text())
    assert set(manifest["files"]) == {"oak/model.safetensors", "state.json"}
    assert manifest["files"]["oak/model.safetensors"]["bytes"] == 700


def test_without_checkpoints_there_is_no_latest(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=1)
    assert checkpoints.latest() is None and checkpoints.best() is None


SAVES_FOR_EVER = """
import sys
from itertools import count
from pathlib import Path
from engine.run.checkpoint import Checkpoints

def write_agents(folder):
    (folder / "oak").mkdir()
    (folder / "oak" / "model.safetensors").write_bytes(b"weights" * 3000)

checkpoints = Checkpoints(Path(sys.argv[1]), keep=1)
found = checkpoints.latest()
for step in count(found.step + 1 if found else 1):
    checkpoints.save(step, {}, write_agents, float(step % 3))
    print(step, flush=True)
"""


def test_a_kill_during_a_save_leaves_the_last_reported_checkpoint_whole(tmp_path):
    chance = luck()
    for _ in range(8):
        saving = subprocess.Popen(
            [sys.executable, "-c", SAVES_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE
        )
        result = int(saving.stdout.readline())
        time.sleep(chance.uniform(0.0, 0.05))
        saving.kill()
        rest = saving.stdout.read().split()
        saving.wait()
        outcome = Checkpoints(tmp_path, keep=1).latest()
        last = int(rest[-1]) if rest else result
        assert outcome.step in (last, last + 1)
        assert outcome.damaged == []
