"""The page of methods, from the registries: what each is, its options, its figures, its recipes;
and what each recipe selects."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from docs.generate import markdown
from docs.generate.markdown import code, sentence, table
from engine.config.methods import REGISTRIES, Registry
from engine.recipes import FOLDER, load_recipe, recipe_names

ABOUT = """
Every method that a setting selects by its name. [Extending Grove](../extending.md) says how to add
one; `python -m engine plugins` lists those that other packages have added on a machine. Options are
settings of one method ([Settings](settings.md)), figures the numbers that it reports of itself,
each of them a chart.
"""
TITLES = {
    "advantages": "Advantages",
    "losses": "Policy losses",
    "rewards": "Rewards",
    "formats": "Formats of problems",
    "strategies": "Strategies of search",
    "allocators": "Allocators of nodes",
    "samplers": "Samplers of problems",
    "environments": "Environments",
    "composers": "Composers of updates",
    "gauges": "Gauges",
}


RECIPES_ABOUT = """
A recipe is a named set of settings; its file, `engine/recipes/NAME.toml`, has their sources.
"""
SENTENCE = re.compile(r".{12,}?[.](?=\s+[A-Z]|$)")
"""The first of a text; `Dr.` ends none."""


def page() -> str:
    parts = [part for one in REGISTRIES for part in _parts(one)]
    return markdown.page("Methods", ABOUT, *parts, *_recipes())


def _recipes() -> Iterator[str]:
    yield "## Recipes"
    yield RECIPES_ABOUT
    head = ("recipe", "what it is", "agents", "advantage", "loss", "composer")
    yield table(head, map(_recipe, recipe_names()))


def _recipe(name: str) -> tuple[str, ...]:
    config = load_recipe(name)
    comment: list[str] = []
    for line in (FOLDER / f"{name}.toml").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").strip())
    text = " ".join(comment)
    about = found[0] if (found := SENTENCE.match(text)) else text
    methods = (config.credit.advantage, config.loss.policy, config.training.compose)
    return code(name), sentence(about), str(len(config.agents)), *map(code, methods)


def _parts(one: Registry) -> Iterator[str]:
    yield f"## {TITLES[one.kind]}"
    yield f"Setting {code(one.path)}; entry points of other packages: {code(f'grove.{one.kind}')}."
    head = ("method", "what it is", "options", "figures", "recipes")
    rows = [_row(one, name) for name in one.methods.own]
    kept = [at for at in range(len(head)) if any(row[at] for row in rows)]
    yield table([head[at] for at in kept], [[row[at] for at in kept] for row in rows])


def _row(one: Registry, name: str) -> tuple[str, ...]:
    source, options = one.methods.source(name), one.methods.options(name)
    about = inspect.cleandoc(source.__doc__ or "").split("\n\n")[0].split("\n")[0]
    paths = (
        [code(f"{one.section}.{name}.{option}") for option in options.model_fields]
        if options
        else []
    )
    figures = [how.title for how in getattr(source, "FIGURES", {}).values()]
    recipes = [code(recipe) for recipe in recipe_names() if _selects(one, name, recipe)]
    return code(name), sentence(about), ", ".join(paths), ", ".join(figures), ", ".join(recipes)


def _selects(one: Registry, name: str, recipe: str) -> bool:
    return name in one.selected(getattr(getattr(load_recipe(recipe), one.section), one.setting))
