"""Grove's trainer: reinforcement learning of several language models in one shared search tree.

Plain Python, torch and Ray. It knows no Django, no database and no HTTP.
"""

import sys

MOST_DIGITS = 10_000
"""Digits of an integer that are written and read as decimals: published tests have some of more
than the 4,300 that Python converts by default, and to convert so many takes no time yet."""
if 0 < sys.get_int_max_str_digits() < MOST_DIGITS:
    sys.set_int_max_str_digits(MOST_DIGITS)
