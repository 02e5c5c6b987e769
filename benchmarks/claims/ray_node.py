"""One Ray that all stages of a run of the claims join; starting one takes a third of a cell.

A process of its own holds it, so that no signal to the runner reaches Ray before the stage at work
is stopped; it ends when its standard input closes, with the runner, however that ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks.conditions import ROOT

CORES = 32
"""More than any cell asks for: cells run one after another, and share the machine's cores."""
STOP_SECONDS = 60.0


@contextmanager
def shared_ray() -> Iterator[Mapping[str, str]]:
    """Yields the environment in which a stage joins a Ray that is there during the block.

    Raises:
        OSError: Ray did not start.
    """
    holder = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert holder.stdin and holder.stdout
    try:
        line = holder.stdout.readline()
        if not line:
            raise OSError(f"the Ray of the claims did not start: exit status {holder.wait()}")
        yield json.loads(line)
    finally:
        holder.stdin.close()
        try:
            holder.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            holder.kill()
            holder.wait()


def main() -> None:
    """Starts Ray, prints the environment of those who join it, and waits for the end of input."""
    import ray

    from engine.preload.environment import use_setup_worker
    from engine.run.own_ray import OwnRay, ray_settings
    from engine.training.cluster import start_ray

    before = dict(os.environ)
    for name, value in ray_settings().items():
        os.environ.setdefault(name, value)
    own = OwnRay()
    use_setup_worker()
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        start_ray(own.options | quiet | {"num_cpus": CORES})
        joining = {name: v for name, v in os.environ.items() if before.get(name) != v}
        joining["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
        print(json.dumps(joining), flush=True)
        sys.stdin.read()
    finally:
        own.close()


if __name__ == "__main__":
    main()
