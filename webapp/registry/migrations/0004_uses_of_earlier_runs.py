"""Model uses of runs created before uses were recorded: versions matched by path, or as starters."""

from django.db import migrations


def note_uses(apps, schema_editor):
    Run = apps.get_model("experiments", "Run")
    ModelVersion = apps.get_model("registry", "ModelVersion")
    ModelUse = apps.get_model("registry", "ModelUse")
    known = {}
    for version in ModelVersion.objects.select_related("model").order_by("pk"):
        project = version.model.project_id
        known[project, version.path] = version.pk
        if starter := version.metadata.get("starter"):
            known[project, f"starter:{starter}"] = version.pk
    runs = Run.objects.filter(model_uses=None).values_list("pk", "experiment__project", "config")
    for pk, project, config in runs.iterator():
        ModelUse.objects.bulk_create(
            ModelUse(run_id=pk, agent=agent["name"], version_id=version)
            for agent in config.get("agents", ())
            if (version := known.get((project, agent["model"])))
        )


class Migration(migrations.Migration):
    dependencies = [("registry", "0003_requests")]
    operations = [migrations.RunPython(note_uses, migrations.RunPython.noop)]
