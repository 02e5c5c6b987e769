import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


def _column(kind):
    return django.contrib.postgres.fields.ArrayField(base_field=kind(), size=None)


_RESUMED = "(SELECT DISTINCT run_id FROM telemetry_event WHERE kind = 'run.resumed')"
_THEIR_METRICS = f"(SELECT id FROM telemetry_metric WHERE run_id IN {_RESUMED})"


class Migration(migrations.Migration):
    """Keeps the points that a resumed run discards, for views as of an earlier event. Deletes the
    metrics and clocks of resumed runs, so that their metrics are rebuilt from their logs."""

    dependencies = [("experiments", "0005_tags_notes_stars"), ("telemetry", "0003_blocks")]

    operations = [
        migrations.CreateModel(
            name="TakenBack",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200)),
                ("taken_at", models.BigIntegerField()),
                ("seq", _column(models.BigIntegerField)),
                ("step", _column(models.BigIntegerField)),
                ("time", _column(models.FloatField)),
                ("tokens", _column(models.BigIntegerField)),
                ("nodes", _column(models.BigIntegerField)),
                ("value", _column(models.FloatField)),
                ("run", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="experiments.run")),
            ],
            options={
                "indexes": [models.Index(fields=["run", "name", "taken_at"], name="taken_back")],
            },
        ),
        migrations.RunSQL(
            [
                f"DELETE FROM telemetry_block WHERE metric_id IN {_THEIR_METRICS}",
                f"DELETE FROM telemetry_chunk WHERE metric_id IN {_THEIR_METRICS}",
                f"DELETE FROM telemetry_metric WHERE run_id IN {_RESUMED}",
                f"DELETE FROM telemetry_clock WHERE run_id IN {_RESUMED}",
            ],
            migrations.RunSQL.noop,
        ),
    ]
