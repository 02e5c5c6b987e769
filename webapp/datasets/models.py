"""Sets of problems.

Invariant: a version never changes. `content_hash` is its identity: a generated set is known by
its spec alone, because the generator gives the same problems for the same spec.
"""

from django.db import models

from webapp.projects.models import InProjectQuerySet, Project


class Dataset(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="datasets")
    name = models.CharField(max_length=200)
    created = models.DateTimeField(auto_now_add=True)

    objects = InProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="dataset_name_in_project")
        ]

    def __str__(self) -> str:
        return self.name


class DatasetVersionQuerySet(InProjectQuerySet):
    project_path = "dataset__project"


class DatasetVersion(models.Model):
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    content_hash = models.CharField(max_length=64)
    left_out = models.JSONField(default=list, blank=True)
    """Problems of the file that could not be used: a sentence each, with place and reason."""
    created = models.DateTimeField(auto_now_add=True)

    objects = DatasetVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number"),
            models.UniqueConstraint(fields=["dataset", "content_hash"], name="dataset_content"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"
