"""Models and their versions, with their lineage.

Invariant: a version never changes. `sha256` is that of its model.safetensors; together with
run, step, dataset version and parent it tells where the weights came from.
"""

from django.db import models

from webapp.datasets.models import DatasetVersion
from webapp.experiments.models import Run
from webapp.projects.models import InProjectQuerySet, Project


class Model(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="models")
    name = models.CharField(max_length=100)
    created = models.DateTimeField(auto_now_add=True)

    objects = InProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="model_name_in_project")
        ]

    def __str__(self) -> str:
        return self.name


class ModelVersionQuerySet(InProjectQuerySet):
    project_path = "model__project"


class ModelVersion(models.Model):
    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    path = models.CharField(max_length=1000)
    """Directory in Hugging Face layout."""
    sha256 = models.CharField(max_length=64)
    parameters = models.BigIntegerField()
    created = models.DateTimeField(auto_now_add=True)
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="versions")
    agent = models.CharField(max_length=40, blank=True)
    """Name of the agent that learned it in `run`."""
    step = models.PositiveIntegerField(null=True)
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, null=True)
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    metadata = models.JSONField(default=dict)

    objects = ModelVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="model_version_number"),
            models.UniqueConstraint(
                fields=["run", "agent"],
                condition=models.Q(run__isnull=False),
                name="one_version_per_agent",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} v{self.number}"
