"""Registered models for the settings and pages of runs (`experiments.registered_models`)."""

from __future__ import annotations

from engine.config.schema import RunConfig
from webapp.experiments.models import Run
from webapp.experiments.run_settings.registered_models import VersionLabel
from webapp.projects.models import Project
from webapp.registry.models import ModelVersion
from webapp.registry.references import resolved
from webapp.registry.services import note_uses, version_behind


class Registry:
    """Implements `RegisteredModels`."""

    def resolved(self, config: RunConfig, project: Project) -> RunConfig:
        return resolved(config, project)

    def has_directory(self, path: str, project: Project) -> bool:
        return ModelVersion.objects.filter(model__project=project, path=path).exists()

    def label_of(self, model: str, project: Project) -> VersionLabel | None:
        version = version_behind(project, model)
        return VersionLabel(str(version), version.parameters) if version else None

    def note_uses(self, run: Run) -> None:
        note_uses(run)
