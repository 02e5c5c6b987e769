import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What is being written. Unlogged: it is overwritten twice a second, and worth nothing after a
    crash of the database."""

    dependencies = [("telemetry", "0005_checked_by_statement"), ("experiments", "0008_turns")]

    operations = [
        migrations.CreateModel(
            name="Drafts",
            fields=[
                ("run", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="drafts", serialize=False, to="experiments.run")),
                ("watched_until", models.DateTimeField()),
                ("version", models.BigIntegerField(default=0)),
                ("body", models.BinaryField(default=b"")),
            ],
        ),
        migrations.RunSQL(
            "ALTER TABLE telemetry_drafts SET UNLOGGED",
            migrations.RunSQL.noop,
        ),
    ]
