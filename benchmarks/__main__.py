"""python -m benchmarks NAME --json

Each measurement is one module of this package with `SUMMARY` and `measure(arguments)`, which
returns what the last line of output holds: {"name", "ratios", "figures", "versions"}. A ratio
is how many times better we are than the peer that it names.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks import sandbox, search

MEASUREMENTS = {"sandbox": sandbox, "search": search}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, module in MEASUREMENTS.items():
        one = names.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        one.add_argument("--json", action="store_true", help="print only the JSON line")
        module.add_arguments(one)
    arguments = parser.parse_args(argv)
    result = {"name": arguments.name, **MEASUREMENTS[arguments.name].measure(arguments)}
    if not arguments.json:
        for kind in ("ratios", "figures", "versions"):
            for key, value in result[kind].items():
                print(f"{kind[:-1]:8} {key:32} {value}")
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
