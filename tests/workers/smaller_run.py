"""`engine train` as it is, on a run that is made smaller first: the demo's own takes minutes to
measure its 300 problems of the test split. Arguments: RUN_DIR --lease-seconds N."""

import json
import sys
from pathlib import Path

from engine.__main__ import main

SMALLER = {
    "problems": {"validation": 4, "test": 6},
    "training": {"trees_per_step": 6},
    "evaluation": {"tree_nodes": 4},
}


if __name__ == "__main__":
    path = Path(sys.argv[1]) / "config.json"
    config = json.loads(path.read_text())
    for section, values in SMALLER.items():
        config[section] |= values
    path.write_text(json.dumps(config))
    sys.exit(main(["train", *sys.argv[1:]]))
