import django.db.models.deletion
from django.db import migrations, models


def charge_uploads(apps, schema_editor):
    """Charges each project for the contents of its finished uploads."""
    uploads = apps.get_model("artifacts", "Upload").objects.exclude(artifact=None)
    charge = apps.get_model("artifacts", "Charge")
    pairs = set(uploads.values_list("project", "artifact"))
    charge.objects.bulk_create(charge(project_id=one, artifact_id=two) for one, two in pairs)


class Migration(migrations.Migration):
    dependencies = [
        ("artifacts", "0002_no_keys"),
        ("projects", "0003_barred_invitations"),
    ]

    operations = [
        migrations.CreateModel(
            name="Charge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "artifact",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="charges",
                        to="artifacts.artifact",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="charges",
                        to="projects.project",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="charge",
            constraint=models.UniqueConstraint(
                fields=("project", "artifact"), name="one_charge_per_content"
            ),
        ),
        migrations.RunPython(charge_uploads, migrations.RunPython.noop),
    ]
