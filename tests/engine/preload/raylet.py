"""A process in the position of Ray's raylet: it starts the command of each line of its input."""

import json
import os
import signal
import subprocess
import sys

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.environ["RAY_RAYLET_PID"] = str(os.getpid())
for line in sys.stdin:
    order = json.loads(line)
    with open(order["errors"], "ab") as errors:  # noqa: PTH123
        environment = os.environ | order["environment"]
        subprocess.Popen(order["command"], stderr=errors, env=environment, process_group=0)
