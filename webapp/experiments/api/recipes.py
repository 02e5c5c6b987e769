"""REST of recipes, presets, and every setting with its help."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router, Schema

from engine.recipes import load_recipe, recipe_data, recipe_names
from webapp.experiments.run_settings.presets import PRESETS
from webapp.experiments.run_settings.settings_schema import setting_groups

router = Router()


class Recipe(Schema):
    name: str
    config: dict[str, Any]


class PresetOut(Schema):
    name: str
    title: str
    help: str
    overrides: dict[str, Any]
    """Dotted path to value, usable with any recipe."""


class RecipeSetting(Schema):
    path: str
    """Path of the setting in `overrides`."""
    label: str
    kind: str
    """flag, choice, number, text, long or toml."""
    help: str
    value: str
    """Default value, as TOML; `unset` if it has none."""
    choices: list[str]
    range: str
    """Range in words, with the unit."""
    optional: bool


class SettingGroup(Schema):
    path: str
    title: str
    settings: list[RecipeSetting]


@router.get("", response=list[Recipe])
def list_recipes(request: HttpRequest):
    """Lists recipes: named settings to start from."""
    return [{"name": name, "config": recipe_data(name)} for name in recipe_names()]


@router.get("/presets", response=list[PresetOut])
def list_presets(request: HttpRequest):
    """Lists presets: common changes that work on any recipe."""
    return PRESETS


@router.get("/{str:recipe}/settings", response=list[SettingGroup])
def list_settings(request: HttpRequest, recipe: str):
    """Lists every setting of a recipe with its help, its range and its value."""
    if recipe not in recipe_names():
        raise Http404
    return setting_groups(load_recipe(recipe))
