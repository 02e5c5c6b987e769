#!/usr/bin/env python
"""Entry point of the web side's commands in a checkout; elsewhere it is `grove manage`."""

import os
import sys

from webapp.manage import main

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    main(sys.argv)
