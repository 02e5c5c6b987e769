"""What each recipe claims of its own, one module each, by the recipe's name with `_` for `-`.

A module may hold
- `advantages(log, config)`, which yields (expected, actual) advantages with the method's formula
  written out again; without, each tree is computed by itself (`of_trees`);
- `check(log, config, run_dir)`, which asserts what else the recipe does;
- `REASONS`, under which its composer may leave rows out; without, none leaves.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import SimpleNamespace

_MODULES = {
    one.name: import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)
}


def claims_of(recipe):
    """The module of a recipe; an empty one if it has none."""
    return _MODULES.get(recipe.replace("-", "_"), SimpleNamespace())


def names():
    """Names of the recipes that have a module."""
    return {name.replace("_", "-") for name in _MODULES}
