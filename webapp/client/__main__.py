"""Entry point `python -m webapp.client`, the same as `grove`."""

import sys

from webapp.client.cli import main

if __name__ == "__main__":
    sys.exit(main())
