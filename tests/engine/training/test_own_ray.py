"""Tests of the Ray that an engine starts for its run: who reaches it, and what is left of it."""

import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import ray
from ray._private.node import Node
from ray._private.parameter import RayParams

from engine.config.compute import ComputeConfig
from engine.preload.environment import runtime_environment
from engine.problems.generator import make_problem
from engine.resources.ray_folder import RayFolder, remove_ray_folder
from engine.rollout.verification import VerifierPool
from engine.run.cluster_readings import ClusterReader
from engine.run.own_ray import LOOPBACK, enter_environment
from engine.run.waits import TeamError
from engine.training.cluster import reserve
from engine.training.seats import Bundle
from engine.training.team import Team
from tests.engine.training.joining import NOBODY
from tests.helpers.clusters import BARE
from tests.helpers.policies import tiny_config
from tests.helpers.waiting import eventually, patience

pytestmark = pytest.mark.slow
INSTALLATION = secrets.token_hex(32)
"""The token of a cluster that the user has set for everything."""

PATIENT = {"GROVE_CALL_SECONDS": "3601", "GROVE_RANKS_GRACE_SECONDS": "6"}


def unheard(name, deadline):
    pass


@ray.remote
def variables():
    return {name: os.environ.get(name) for name in PATIENT}


@pytest.fixture(scope="module")
def run_dir():
    """A run directory that every account may enter, by a path that is too long for sockets."""
    top = Path(tempfile.mkdtemp())
    folder = top / ("long" * 20) / "run"
    folder.mkdir(parents=True)
    for path in (top, folder.parent, folder):
        path.chmod(0o755)
    (folder / "config.json").write_text("{}")
    (folder / "config.json").chmod(0o644)
    yield folder
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def team(run_dir):
    """A team with a learner of two ranks, which started its Ray although the user's environment
    names the token of another cluster and switches tokens off."""
    restore = enter_environment(
        {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": INSTALLATION, **PATIENT}
    )
    oak = {"name": "oak", "model": "starter:oak", "learner_ranks": 2}
    config = tiny_config(agents=[oak])
    address = os.environ.pop("RAY_ADDRESS", None)
    started = Team(config, unheard, run_dir)
    started.ready()
    yield started
    started.close()
    restore()
    if address:
        os.environ["RAY_ADDRESS"] = address


@pytest.mark.large
def test_deadlines_reach_workers_and_preloaded_actors(team):
    forked = runtime_environment(team.config.compute)
    assert "launcher" in str(forked)
    for options in ({}, {"runtime_env": forked}):
        assert ray.get(variables.options(num_cpus=0, **options).remote(), timeout=100) == PATIENT


def address():
    return ray._private.worker._global_node.gcs_address


def node_id():
    return ray.get_runtime_context().get_node_id()


def processes(token_file):
    """This process, those that it started, and those that a server of its Ray forked."""
    this = psutil.Process()
    family = {one.pid: one for one in (this, *this.children(recursive=True))}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("RAY_AUTH_TOKEN_PATH") == str(token_file):
                family[process.pid] = process
    return list(family.values())


def listening(process):
    """The name of a process and each address at which it listens; nothing if it has ended."""
    with suppress(psutil.Error):
        name = " ".join(process.cmdline()[:1])
        return [
            (name, *connection.laddr)
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
    return []


def test_nothing_of_a_run_listens_to_the_network(team, run_dir):
    family = processes(run_dir / "ray" / "token")
    sockets = [one for process in family for one in listening(process)]
    # Among them are the store and the connections of the ranks.
    expected = ("gcs_server", "raylet", "RuntimeEnvAgent", "PolicyActor", "LearnerRank", "Verifier")
    names = " ".join(name for name, *_ in sockets)
    assert [name for name in expected if name not in names] == []
    assert sum("LearnerRank" in name for name, *_ in sockets) >= 4
    own = {LOOPBACK, f"::ffff:{LOOPBACK}", "::1"}
    assert [one for one in sockets if one[1] not in own] == []


def test_nobody_joins_without_the_token_of_this_run(team, run_dir):
    ours = (run_dir / "ray" / "token").read_text()
    of_another_run = RayFolder()
    others = of_another_run.token_file.read_text()
    of_another_run.close()
    assert len({ours, others, INSTALLATION}) == 3
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH")}
    # Where Ray looks for an address of others: in a folder that every account may enter.
    environment |= {"RAY_NUM_REDIS_GET_RETRIES": "1", "RAY_TMPDIR": str(run_dir.parent)}
    joining = Path(__file__).with_name("joining.py")
    given = [sys.executable, joining, address(), json.dumps([ours, INSTALLATION, others])]
    tried = subprocess.run(
        given, env=environment, capture_output=True, text=True, check=True, timeout=120 * patience()
    )
    joined, *refused = json.loads(tried.stdout.splitlines()[-1])
    assert joined == os.getuid()
    assert len(refused) == 3
    assert all("authentication" in reason for reason in refused), refused


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another account, which only root can")
def test_another_account_reads_nothing_of_it(team, run_dir):
    def denied(path):
        command = ["/bin/ls" if path.is_dir() else "/bin/cat", str(path)]
        ended = subprocess.run(
            command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True
        )
        return ended.returncode != 0 and "Permission denied" in ended.stderr

    assert not denied(run_dir / "config.json")
    folder = run_dir / "ray"
    files = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    assert {"token", "raylet", "plasma_store"} <= {path.name for path in files}
    assert all(denied(path) for path in (folder, folder / "token", *files[:3]))
    short = Path((folder / "short_name").read_text())
    assert denied(short) and denied(short / "r" / "session_latest")
    # Objects are in files without a name.
    assert not list(Path("/dev/shm").glob("plasma*"))


@pytest.mark.large
def test_a_node_that_joins_is_given_nothing(team, tmp_path):
    """It has the token, the same address, and all the resources that anyone could want."""
    mine = node_id()
    stranger = Node(
        RayParams(
            gcs_address=address(), num_cpus=64, num_gpus=0,
            min_worker_port=0, max_worker_port=0, object_store_memory=10**8,
            dashboard_agent_listen_port=None, **BARE,
        ),
        head=False, shutdown_at_exit=False,
    )  # fmt: skip
    try:
        eventually(lambda: sum(n["Alive"] for n in ray.nodes()) == 2, "the node to join")
        team.verifier.renew()
        pool = VerifierPool(team.config, {}, unheard)
        assert len(team.verifier.verifiers) == len(pool.verifiers) == 1
        problem = make_problem(2, 1)[0]
        assert pool.verify([(problem, problem.reference)])
        # All cores of this node are the team's: there is room on the stranger's alone.
        with pytest.raises(TeamError, match="waited 1 s"):
            reserve([Bundle("ours", 1, {"CPU": 1.0})], ComputeConfig(placement_seconds=1), unheard)
        readings = ClusterReader(tmp_path).read()
        assert readings and {name.partition(".")[2] for name in readings} <= {"node0"}
        actors = ray._private.state.actors()
        assert len(actors) == 5
        assert {actor["Address"]["NodeID"] for actor in actors.values()} == {mine}
    finally:
        stranger.kill_all_processes(check_alive=False, wait=True)


def test_nothing_of_it_is_left(team, run_dir):
    """The last one: it ends the team."""
    folder = run_dir / "ray"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    short = Path((folder / "short_name").read_text())
    assert stat.S_IMODE(short.stat().st_mode) == 0o700
    team.close()
    assert [path.name for path in run_dir.iterdir()] == ["config.json"]
    assert not short.exists()
    assert os.environ["RAY_AUTH_TOKEN"] == INSTALLATION
    assert os.environ.get("RAY_AUTH_TOKEN_PATH") != str(folder / "token")


def test_what_a_killed_engine_left_is_removed(tmp_path):
    run_dir = tmp_path / ("long" * 20)
    run_dir.mkdir()
    code = f"""
import os
from pathlib import Path
from engine.resources.ray_folder import RayFolder
print(RayFolder(Path({str(run_dir)!r})).for_ray, flush=True)
os._exit(1)
"""

    def killed():
        return Path(
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout[:-1]
        )

    first, second = killed(), killed()
    assert first != second and not first.is_symlink()
    assert second.is_dir() and second.samefile(run_dir / "ray" / "files")
    assert len(os.fsencode(second)) <= 43
    remove_ray_folder(run_dir)
    assert not second.parent.exists() and not list(run_dir.iterdir())


def test_a_short_run_directory_needs_no_other_name():
    run_dir = Path(tempfile.mkdtemp(prefix="g", dir="/tmp"))
    folder = RayFolder(run_dir)
    assert folder.for_ray == run_dir / "ray" / "files"
    folder.close()
    run_dir.rmdir()
