import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


def _column(kind):
    return django.contrib.postgres.fields.ArrayField(base_field=kind(), size=None)


class Migration(migrations.Migration):
    """Stores points 32 per row. The metrics of a run without a clock are rebuilt from its log."""

    dependencies = [("telemetry", "0002_metrics")]

    operations = [
        migrations.RunSQL(
            "TRUNCATE telemetry_point, telemetry_chunk, telemetry_metric, telemetry_clock",
            migrations.RunSQL.noop,
        ),
        migrations.DeleteModel(name="Point"),
        migrations.CreateModel(
            name="Block",
            fields=[
                ("pk", models.CompositePrimaryKey("metric_id", "index", blank=True, editable=False, primary_key=True, serialize=False)),
                ("index", models.BigIntegerField()),
                ("seq", _column(models.BigIntegerField)),
                ("step", _column(models.BigIntegerField)),
                ("time", _column(models.FloatField)),
                ("tokens", _column(models.BigIntegerField)),
                ("nodes", _column(models.BigIntegerField)),
                ("value", _column(models.FloatField)),
                ("metric", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="telemetry.metric")),
            ],
        ),
    ]
