"""Script: checks the chat templates of a JSON object on standard input, within so many seconds of
processor time (its argument) per process, and prints the error of each (null: none) and the peak
memory in KiB of this process and of those that it started."""

import json
import resource
import sys
from pathlib import Path

from engine.resources.model_files.templates import TemplateTooLarge, check_template


def error_of(template: str) -> str | None:
    try:
        check_template(template)
    except TemplateTooLarge as error:
        return str(error)
    return None


def own_peak() -> int:
    """Its `ru_maxrss` would include the peak of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


if __name__ == "__main__":
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    errors = {name: error_of(template) for name, template in json.load(sys.stdin).items()}
    others = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"errors": errors, "peaks": [own_peak(), others]}))
