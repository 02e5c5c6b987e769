"""Tests of the image's entry point, and of the job for Slurm.

It runs on a root that cannot be written to, under an unknown account without HOME (`image.py`).
`test_fresh_machine.py` starts all of its processes.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.sandbox.host.process import ZYGOTE
from tests.helpers.waiting import eventually, patience
from tests.packaging.builds import ROOT
from tests.packaging.image import ENTRYPOINT, UNKNOWN, Container, as_account, needs_containment
from tests.workers.engines import let_go, small_engine


@pytest.mark.large
@pytest.mark.service
@needs_containment
@pytest.mark.parametrize("limited", [False, True])
def test_the_image_counts_the_memory_of_its_control_group(elsewhere, tmp_path, limited):
    with control_group("memory", "memory.limit_in_bytes", 700 << 20) as group:
        container = Container(elsewhere, tmp_path / "var", {})
        program = "from engine.resources.machine_memory import machine_memory as m; print(m())"
        command = container.command("python", "-c", program)
        if limited:
            command = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *command]
        done = subprocess.run(
            command, env=container.environment, capture_output=True, text=True,
            timeout=120 * patience(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (int(done.stdout) == 700 << 20) == limited


@contextmanager
def control_group(controller, file, value):
    """A group of this test's own below the one that it is in; skips the test where none may be."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    names = [line.split(":")[2] for line in lines if f":{controller}:" in line]
    if not names:
        pytest.skip(f"no control groups of version 1 for {controller}")
    own = Path("/sys/fs/cgroup", controller, names[0].strip("/"))
    group = own / f"grove-test-{os.getpid()}"
    try:
        group.mkdir()
        group.chmod(0o755)  # as every control group is, whatever the umask
        (group / file).write_text(str(value))
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    yield group
    eventually(lambda: not (group / "cgroup.procs").read_text(), "an empty group")
    group.rmdir()


@pytest.mark.large
@pytest.mark.service
@needs_containment
@pytest.mark.parametrize(("may_unshare", "tier"), [(False, "restricted"), (True, "full")])
def test_the_sandbox_has_its_walls_for_an_account_without_any_capability(
    elsewhere, tmp_path, may_unshare, tier
):
    container = Container(elsewhere, tmp_path / "var", {}, may_unshare=may_unshare)
    done = container.run("python", "-c", CHECKED)
    assert done.returncode == 0 and done.stdout.split() == ["0", tier], done.stdout + done.stderr


CHECKED = """
from pathlib import Path
from engine.config.sandbox import SandboxConfig
from engine.sandbox.host.sandbox import Sandbox
from engine.sandbox.host.self_check import self_check
with Sandbox(SandboxConfig(workers=1)) as sandbox:
    self_check(sandbox)
    status = Path("/proc/self/status").read_text().split()
    print(int(status[status.index("CapEff:") + 1], 16), sandbox.tier())
"""


@needs_containment
def test_a_sandbox_whose_python_is_closed_to_others_names_the_folder_and_the_remedy(tmp_path):
    """A capability to read it ends in the sandbox's user namespace."""
    base = Path(sys.base_prefix)
    mounts = f"""
        mount --make-rprivate / && mount -t tmpfs -o mode=700 none /mnt && mkdir /mnt/python
        mount --rbind {shlex.quote(str(base))} /mnt/python && exec "$@"
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    python = Path("/mnt/python", Path(sys.executable).resolve().relative_to(base))
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", mounts, "sh",
         *as_account(UNKNOWN, "-all,+dac_read_search"),
         str(python), "-s", "-S", "-P", "-B", str(ZYGOTE), "0", "safe"],
        stdin=theirs, env={}, cwd="/",
    )  # fmt: skip
    with ours, theirs:
        ours.settimeout(60 * patience())
        said = ours.recv(1 << 16).decode()
    process.wait(60 * patience())
    assert said.startswith("E")
    assert "Permission denied: '/mnt/python/lib/" in said and "chmod o+rX" in said


@needs_containment
def test_a_data_directory_that_cannot_be_written_to_is_refused_in_a_sentence(tmp_path):
    folder = tmp_path / "var"
    folder.mkdir()
    done = subprocess.run(
        [*as_account(UNKNOWN, "-all,+dac_read_search"), "sh", str(ENTRYPOINT), "true"],
        env={"PATH": os.environ["PATH"], "GROVE_VAR": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 73
    expected = f"GROVE_VAR = '{folder}': account {UNKNOWN} cannot write there; mount a volume"
    assert expected in done.stderr


def test_what_cannot_be_written_to_is_replaced_and_the_rest_is_kept(tmp_path):
    def variables(**given):
        words = ["sh", str(ENTRYPOINT), "env"]
        env = {"PATH": os.environ["PATH"], "GROVE_VAR": str(tmp_path / "var"), **given}
        lines = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        return dict(line.split("=", 1) for line in lines.splitlines())

    home, var = tmp_path / "home", tmp_path / "var"
    home.mkdir()
    kept = variables(HOME=str(home), TMPDIR=str(home))
    assert kept["HOME"] == kept["TMPDIR"] == str(home)
    replaced = variables(HOME="/proc/nowhere", TMPDIR="/nowhere")
    assert replaced["HOME"] == str(var / "home") and replaced["TMPDIR"] == str(var / "tmp")
    assert variables()["HOME"] == str(var / "home")
    assert (var / "home").stat().st_mode & 0o777 == 0o700


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("ends", ["by itself", "by SIGTERM"])
def test_the_job_of_slurm_hands_on_signals_and_the_engine_s_status(tmp_path, ends):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "lease").touch()
    options = {"steps": 1} if ends == "by itself" else {"steps": 1, "hold_at": 1}
    engine = shlex.join(small_engine(**options))
    grove = tmp_path / "grove"
    grove.write_text(f'#!/bin/sh\n[ "$1" = train ] && exec {engine} "$2" --lease-seconds 60\n')
    grove.chmod(0o755)
    requeued = tmp_path / "requeued"
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >{requeued}\n')
    (tmp_path / "scontrol").chmod(0o755)
    environment = {
        **os.environ, "GROVE_BIN": str(grove), "GROVE_LAUNCHER": "env", "SLURM_JOB_ID": "17",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }  # fmt: skip
    job = subprocess.Popen(
        ["bash", str(ROOT / "deploy" / "slurm" / "train.sbatch"), str(run_dir)],
        env=environment, cwd=ROOT,
    )  # fmt: skip
    if ends == "by SIGTERM":
        log = run_dir / "events.jsonl"
        eventually(lambda: log.exists() and b"step.start" in log.read_bytes(), "a step")
        job.terminate()
    try:
        assert job.wait(120 * patience()) == (0 if ends == "by itself" else 3)
        assert requeued.exists() == (ends == "by SIGTERM")
        assert not requeued.exists() or requeued.read_text() == "requeue 17\n"
    finally:
        let_go(run_dir)
        job.kill()
