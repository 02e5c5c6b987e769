"""Cost of each layer of isolation per program, in a bare interpreter like the zygote's.

Run by path as `python -I -S -B layers.py FOLDER PROGRAMS`, where FOLDER holds the sandbox's
modules. Prints {layer: milliseconds}, where each layer includes those before it: the time to fork
a child that compiles and runs a small program, and to reap it.
"""

# ruff: noqa: PTH120

import json
import os
import statistics
import sys
import time

FOLDER, PROGRAMS = sys.argv[1], int(sys.argv[2])
sys.path.append(FOLDER)

import isolation  # noqa: E402
import landlock  # noqa: E402
import seccomp  # noqa: E402

GB, ROUNDS = 1 << 30, 5
SOURCE = "def solve(row, factor):\n    return [x * factor for x in row]\nsolve([3, 2, 1], 3)\n"
LAYERS = ("fork", "rlimits", "namespaces", "landlock", "seccomp")


def main() -> None:
    best = dict.fromkeys(LAYERS, float("inf"))
    for _ in range(ROUNDS):  # in turns, and the best of each: other load only adds time
        for i, layer in enumerate(LAYERS):
            best[layer] = min(best[layer], measured(LAYERS[: i + 1]))
    print(json.dumps(best))


def measured(layers: tuple[str, ...]) -> float:
    """Returns median milliseconds under these layers; in a fork, since they are irreversible."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, str(repeat(layers)).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    value = float(os.read(read, 100))
    os.close(read)
    return value


def repeat(layers: tuple[str, ...]) -> float:
    active = isolation.Isolation(isolation.private_uid(1) if "rlimits" in layers else 0)
    if "namespaces" in layers:
        active.walls += isolation._enter_namespaces(os.path.dirname(os.__file__))
        if active.owns_pid_namespace and (pid := os.fork()):
            os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    if "landlock" in layers:
        isolation._prctl(isolation.PR_SET_NO_NEW_PRIVS, 1)
        if (rules := landlock.rules(["/"], [isolation.TEMPORARY])) is not None:
            landlock.restrict_self(rules)
    if "seccomp" in layers:
        active.filters[isolation.GIVEN] = seccomp.build(writes=True, given=isolation.GIVEN)
    seconds = []
    for _ in range(PROGRAMS):
        started = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            run(active, confined="rlimits" in layers)
        os.waitpid(pid, 0)
        seconds.append(time.perf_counter() - started)
    return round(1000 * statistics.median(seconds), 3)


def run(active: "isolation.Isolation", confined: bool) -> None:
    """Never returns."""
    try:
        if confined:
            isolation._prctl(isolation.PR_SET_NO_NEW_PRIVS, 1)
            isolation.confine(active, 10, GB, 1 << 16, 0)
        exec(compile(SOURCE, "program.py", "exec"), {})
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
