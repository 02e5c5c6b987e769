"""Command `python -m docs.generate`: writes the generated pages, or checks them."""

from __future__ import annotations

import argparse
import os
import sys

from docs.generate.pages import contents, differing, write


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page differs")
    given = parser.parse_args(argv)
    for name in [one for one in os.environ if one.startswith("GROVE_") and one != "GROVE_VAR"]:
        del os.environ[name]  # a documented default applies where nothing is set
    changed = differing(contents())
    for path in changed:
        print(f"{path}: {'differs' if given.check else 'written'}")
    if given.check:
        return 1 if changed else 0
    write(changed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
