"""Lineage of a version: its ancestors and descendants, as a small tree."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.registry.models import ModelVersion

MOST_ANCESTORS = 12
MOST_DESCENDANTS = 40
_WITH = ("model", "run__experiment", "dataset_version__dataset")


@dataclass(frozen=True, slots=True)
class LineageRow:
    """One version in the tree; `depth` counts from the oldest shown."""

    version: ModelVersion
    depth: int
    is_self: bool


def lineage(version: ModelVersion) -> list[LineageRow]:
    """Returns the ancestors, the version, and its descendants, each child beneath its parent.

    At most the nearest `MOST_ANCESTORS` before it and `MOST_DESCENDANTS` after it.
    """
    rows = [
        LineageRow(one, depth, one.pk == version.pk) for depth, one in enumerate(_line_to(version))
    ]
    return rows + _below(version, len(rows))


def _line_to(version: ModelVersion) -> list[ModelVersion]:
    line = [version]
    while line[0].parent_id and len(line) <= MOST_ANCESTORS:
        versions = ModelVersion.objects.select_related(*_WITH)
        line.insert(0, versions.get(pk=line[0].parent_id))
    return line


def _below(version: ModelVersion, depth: int) -> list[LineageRow]:
    children: dict[int, list[ModelVersion]] = {}
    level, left = [version.pk], MOST_DESCENDANTS
    while level and left:  # one query for each generation
        next_level = ModelVersion.objects.filter(parent__in=level).select_related(*_WITH)
        generation = list(next_level.order_by("model__name", "number")[:left])
        for child in generation:
            children.setdefault(child.parent_id, []).append(child)
        level, left = [child.pk for child in generation], left - len(generation)
    return list(_walk(version.pk, depth, children))


def _walk(parent: int, depth: int, children: dict[int, list[ModelVersion]]) -> list[LineageRow]:
    rows = []
    for child in children.get(parent, ()):
        rows += [LineageRow(child, depth, False), *_walk(child.pk, depth + 1, children)]
    return rows
