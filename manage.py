#!/usr/bin/env python
"""The commands of the web side, in a checkout; elsewhere they are `grove manage`."""

import os
import sys

from webapp.manage import main

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    main(sys.argv)
