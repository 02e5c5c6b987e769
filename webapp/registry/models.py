"""Models and their versions, with their lineage, and what people decided about them.

Invariants: a version's files and lineage never change. `sha256` is that of its model.safetensors,
or of the list of its weight files; together with run, step, dataset version and parent it records
the origin of the weights. Only a `Promotion` moves an alias (`registry.promotion`). What refers to
a version protects it: it cannot be deleted before its references, only with them (RESTRICT).
"""

from django.conf import settings
from django.db import models

from webapp.artifacts.models import Artifact
from webapp.datasets.models import DatasetVersion
from webapp.experiments.models import Run
from webapp.names import NameColumn
from webapp.projects.models import InProjectQuerySet, Project, Workspace
from webapp.queued_imports import ENDED_WITHOUT, QueuedImport


class Model(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="models")
    name = NameColumn(max_length=100)
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    objects = InProjectQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="model_name_in_project"),
        ]

    def __str__(self) -> str:
        return self.name


class ModelVersionQuerySet(InProjectQuerySet):
    project_path = "model__project"


class ModelVersion(models.Model):
    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    path = models.CharField(max_length=1000)
    """Directory in Hugging Face layout, by which runs name it. Once the files are artifacts, it is
    restored from them if it is missing when a run needs it (`registry.model_files.folders`)."""
    sha256 = models.CharField(max_length=64)
    parameters = models.BigIntegerField()
    created = models.DateTimeField(auto_now_add=True)
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="versions")
    agent = models.CharField(max_length=40, blank=True)
    """Name of the agent that was trained in `run`."""
    step = models.PositiveIntegerField(null=True)
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.RESTRICT, null=True)
    parent = models.ForeignKey(
        "self", on_delete=models.RESTRICT, null=True, related_name="children"
    )
    metadata = models.JSONField(default=dict)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    notes = models.TextField(blank=True)
    """People's notes, in markdown; the rest of its card is generated."""

    objects = ModelVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="model_version_number"),
            models.UniqueConstraint(
                fields=["run", "agent", "step"],
                condition=models.Q(run__isnull=False),
                name="one_version_per_agent_and_step",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} v{self.number}"


class OfVersionQuerySet(InProjectQuerySet):
    project_path = "version__model__project"


class VersionFile(models.Model):
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=100)
    size = models.BigIntegerField()
    """Bytes."""
    sha256 = models.CharField(max_length=64)
    artifact = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, null=True, related_name="model_files"
    )
    """Its content; null until a worker has stored the file of a run (`services.store_next`)."""

    objects = OfVersionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "name"], name="file_in_version")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ImportKind(models.TextChoices):
    GGUF = "gguf", "GGUF file"
    PACKAGE = "package", "pretrained model"


class ModelImport(QueuedImport):
    """A model that a worker converts, from an uploaded GGUF file or a package of the catalogue of
    pretrained models; it becomes a version. `registry.model_imports.states` is its only writer."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="model_imports")
    kind = models.CharField(max_length=10, choices=ImportKind.choices)
    name = models.CharField(max_length=100)
    """Name of the model that gets the version; created then if missing."""
    file = models.CharField(max_length=200, blank=True)
    """Name of the uploaded file, as its user gave it; empty for a package."""
    artifact = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, null=True, related_name="model_imports"
    )
    """Content of the uploaded file, as long as the import may still need it."""
    package = models.CharField(max_length=100, blank=True)
    """Name in the catalogue of pretrained models; empty for a file."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    version = models.ForeignKey(
        ModelVersion, on_delete=models.SET_NULL, null=True, related_name="imports"
    )
    """The resulting version; null until it is done, and once that was deleted."""

    objects = InProjectQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["state", "lease_expires"], name="model_import_open")]

    def __str__(self) -> str:
        return f"{self.file or self.package} as {self.name}"

    @property
    def can_retry(self) -> bool:
        """Whether it ended without a version and its source is still there."""
        ended = self.state in ENDED_WITHOUT
        return ended and (self.kind == ImportKind.PACKAGE or self.artifact_id is not None)


class ModelUse(models.Model):
    """An agent of a run that started from a version."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="model_uses")
    agent = models.CharField(max_length=40)
    version = models.ForeignKey(ModelVersion, on_delete=models.RESTRICT, related_name="uses")

    objects = OfVersionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "agent"], name="one_model_each")]


class Evaluation(models.Model):
    """An evaluation of a version on a set of problems, executed by an ordinary run."""

    version = models.ForeignKey(ModelVersion, on_delete=models.RESTRICT, related_name="evaluations")
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.RESTRICT, related_name="evaluations"
    )
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="evaluation")
    created = models.DateTimeField(auto_now_add=True)
    figures = models.JSONField(default=dict)
    """{value, standard_error, problems} by name (`engine.evaluation.figures`)."""
    outcomes = models.JSONField(default=dict)
    """Values of each problem, keyed by content, by name of the figure."""

    objects = OfVersionQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.version} on {self.dataset_version}"


class OfModelQuerySet(InProjectQuerySet):
    project_path = "model__project"


class Alias(models.Model):
    """A movable name of one version of a model, such as champion or candidate."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=40)
    version = models.ForeignKey(ModelVersion, on_delete=models.RESTRICT, related_name="aliases")
    moved = models.DateTimeField(auto_now=True)

    objects = OfModelQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="alias_in_model")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class PromotionState(models.TextChoices):
    WAITING = "waiting", "waits for a second person"
    DONE = "done", "done"
    REFUSED = "refused", "refused"
    WITHDRAWN = "withdrawn", "taken back"


class Promotion(models.Model):
    """A move of an alias: requested, then done, refused or withdrawn. Never deleted."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="promotions")
    alias = models.CharField(max_length=40)
    version = models.ForeignKey(
        ModelVersion, on_delete=models.SET_NULL, null=True, related_name="promotions"
    )
    number = models.PositiveIntegerField(null=True)
    """Number of the version; null removes the alias."""
    previous = models.PositiveIntegerField(null=True)
    """Number of the alias's version before the move, once it has moved."""
    reason = models.TextField()
    state = models.CharField(max_length=10, choices=PromotionState.choices)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    asked = models.DateTimeField(auto_now_add=True)  # codespell:ignore
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided = models.DateTimeField(null=True)
    decision = models.TextField(blank=True)
    """The second person's comment."""

    objects = OfModelQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["model", "alias"],
                condition=models.Q(state="waiting"),
                name="one_wish_per_alias",
            )
        ]


class SecondPairOfEyes(models.Model):
    """Policy of a workspace in which every promotion requires a second person's approval."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField(auto_now_add=True)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
