"""Model card of a version, in markdown: a generated part, then people's notes.

Invariant: the first part is generated from the registry on every request; people write below it
only. Names that people gave are escaped, so they cannot imitate the generated part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from webapp.registry.models import ModelVersion
from webapp.registry.versions.metrics import Metric, evaluations_of, metrics_of

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~])")
_LINES = re.compile(r"\s+")


def card(version: ModelVersion) -> str:
    """Returns the whole card."""
    generated = generated_part(version, metrics_of(version, evaluations_of(version)))
    return (
        f"{generated}\n## Notes\n\n{version.notes.strip()}\n"
        if version.notes.strip()
        else generated
    )


def generated_part(version: ModelVersion, metrics: Sequence[Metric]) -> str:
    """Returns the generated part: what the registry knows of the version."""
    parts = [f"# {_plain(version)}", _origin(version), _facts(version)]
    if metrics:
        parts.append(_metrics(metrics))
    parts += [_files(version), _use()]
    return "\n\n".join(parts) + "\n"


def _origin(version: ModelVersion) -> str:
    if version.run:
        of = f" as agent {_plain(version.agent)}" if version.agent else ""
        begun = f", starting from {_plain(version.parent)}" if version.parent else ""
        return f"Trained in the run {_plain(version.run)}{of}, to step {version.step}{begun}."
    if starter := version.metadata.get("starter"):
        made = f" It was {_plain(origin)}." if (origin := starter_origin(version)) else ""
        return f"The starter {_plain(starter)}, which ships with Grove.{made}"
    by = f" by {_plain(version.created_by)}" if version.created_by else ""
    if source := source_of(version):
        return f"Converted from {_plain(source)}, added{by} on {version.created:%-d %B %Y}."
    derived = f" It was derived from {_plain(version.parent)}." if version.parent else ""
    return f"Imported{by} on {version.created:%-d %B %Y}.{derived}"


def starter_origin(version: ModelVersion) -> str:
    """Returns what a starter was made from, as far as its lineage says: seed, steps by phase of its
    recipe, version of the problem generator. Empty for a version without these."""
    recipe = version.metadata.get("recipe") or {}
    phases = [
        f"{phase['steps']:,} {name} steps"
        for name, phase in recipe.items()
        if isinstance(phase, dict) and isinstance(phase.get("steps"), int)
    ]
    if isinstance(recipe.get("steps"), int):  # of a lineage with one phase
        phases = [f"{recipe['steps']:,} steps"]
    seed, generator = (version.metadata.get(key) for key in ("seed", "generator_version"))
    parts = [
        f"made from seed {seed}" if seed is not None else "",
        " and ".join(phases),
        f"generator v{generator}" if generator is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def source_of(version: ModelVersion) -> str:
    """Returns what a converted version was made from; empty for any other."""
    origin = version.metadata.get("origin") or {}
    if origin.get("kind") == "package":
        return f"the package {origin['package']} {origin['version']}"
    return f"the GGUF file {origin['file']}" if origin.get("kind") == "gguf" else ""


def _facts(version: ModelVersion) -> str:
    origin = version.metadata.get("origin") or {}
    rows: list[tuple[str, Any]] = [
        ("Project", version.model.project),
        ("Parameters", f"{version.parameters:,}"),
        ("Warnings", " ".join(version.metadata.get("warnings") or []) or None),
        ("Architecture", version.metadata.get("architecture")),
        ("Quantisation of the source", origin.get("quantisation")),
        ("SHA-256 of the source", origin.get("sha256")),
        ("Licence", origin.get("licence")),
        ("Licence text", origin.get("licence_url")),
        ("Licence accepted by", origin.get("licence_accepted_by")),
        ("Trained on", version.dataset_version),
        ("Recipe", version.run and version.run.config.get("recipe")),
        ("Seed", version.metadata.get("seed")),
        ("Aliases", ", ".join(alias.name for alias in version.aliases.all()) or None),
        ("Created", f"{version.created:%Y-%m-%d %H:%M} UTC"),
        ("SHA-256 of the weights", version.sha256),
    ]
    return _table(("What", "Value"), [(name, value) for name, value in rows if value is not None])


def _metrics(metrics: Sequence[Metric]) -> str:
    rows = [
        (
            one.source,
            one.figure,
            f"{one.value:.4f}",
            "" if one.standard_error is None else f"{one.standard_error:.4f}",
            f"{one.problems:,}",
        )
        for one in metrics
    ]
    table = _table(("Problems", "Figure", "Value", "± 1 s.e.", "Number"), rows)
    return f"## Metrics\n\n{table}"


def _files(version: ModelVersion) -> str:
    rows = [(one.name, f"{one.size:,}", one.sha256) for one in version.files.all()]
    return "## Files\n\n" + _table(("Name", "Bytes", "SHA-256"), rows)


def _use() -> str:
    return (
        "## Use\n\nThe files are in Hugging Face layout: `AutoModelForCausalLM.from_pretrained` "
        "and `AutoTokenizer.from_pretrained` read the exported folder."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(_plain(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _plain(value: Any) -> str:
    """Returns a value as one line of text, escaped for markdown."""
    return _SPECIAL.sub(r"\\\1", _LINES.sub(" ", str(value)).strip())
