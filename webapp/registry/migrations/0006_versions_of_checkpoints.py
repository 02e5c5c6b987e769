"""A run's agent may have a version of each of its checkpoints, not of its end alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("registry", "0005_no_keys")]

    operations = [
        migrations.RemoveConstraint(model_name="modelversion", name="one_version_per_agent"),
        migrations.AddConstraint(
            model_name="modelversion",
            constraint=models.UniqueConstraint(
                condition=models.Q(("run__isnull", False)),
                fields=("run", "agent", "step"),
                name="one_version_per_agent_and_step",
            ),
        ),
    ]
