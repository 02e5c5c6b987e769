"""Script of an engine of another release: LINES RUN_DIR --lease-seconds N.

It appends LINES to the log as they are, and knows nothing of today's vocabulary. Then it learns on
until SIGTERM, and stops with a checkpoint, as every engine does.
"""

import json
import signal
import sys
import time
from pathlib import Path


def main(lines, run_dir, lease_seconds):
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    events = lines.read_text().splitlines()
    with (run_dir / "events.jsonl").open("a") as log:
        for line in events:
            log.write(line + "\n")
            log.flush()
        while not stop and time.time() - (run_dir / "lease").stat().st_mtime < lease_seconds:
            time.sleep(0.02)
        last = {
            "seq": len(events) + 1,
            "time": time.time(),
            "kind": "run.state",
            "tree": None,
            "node": None,
        }
        log.write(json.dumps({**last, "payload": {"state": "stopped", "reason": ""}}) + "\n")
    sys.exit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[4]))
