import django.db.models.deletion
from django.db import migrations, models

_METRICS_EXIST = """
CREATE FUNCTION telemetry_metrics_exist() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    missing bigint;
BEGIN
    -- As a foreign key does: what is referred to stays until this transaction ends.
    PERFORM FROM telemetry_metric WHERE id IN (SELECT metric_id FROM added) FOR KEY SHARE;
    SELECT added.metric_id INTO missing FROM added
    WHERE NOT EXISTS (SELECT FROM telemetry_metric WHERE id = added.metric_id) LIMIT 1;
    IF FOUND THEN
        RAISE foreign_key_violation USING
            MESSAGE = format('%I refers to metric %s, which does not exist', TG_TABLE_NAME, missing);
    END IF;
    RETURN NULL;
END $$
"""
_METRICS_UNUSED = """
CREATE FUNCTION telemetry_metrics_unused() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    used bigint;
BEGIN
    SELECT gone.id INTO used FROM gone
    WHERE EXISTS (SELECT FROM telemetry_block WHERE metric_id = gone.id)
       OR EXISTS (SELECT FROM telemetry_chunk WHERE metric_id = gone.id) LIMIT 1;
    IF FOUND THEN
        RAISE foreign_key_violation USING
            MESSAGE = format('metric %s has blocks or chunks that refer to it', used);
    END IF;
    RETURN NULL;
END $$
"""


def _after(event, table):
    return (
        f"CREATE TRIGGER metrics_exist_{event.lower()} AFTER {event} ON telemetry_{table}"
        " REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
        " EXECUTE FUNCTION telemetry_metrics_exist()"
    )


_MADE = [
    _METRICS_EXIST,
    _METRICS_UNUSED,
    *(_after(event, table) for event in ("INSERT", "UPDATE") for table in ("block", "chunk")),
    "CREATE TRIGGER metrics_unused AFTER DELETE ON telemetry_metric REFERENCING OLD TABLE AS gone"
    " FOR EACH STATEMENT EXECUTE FUNCTION telemetry_metrics_unused()",
]
_UNMADE = [
    "DROP FUNCTION telemetry_metrics_exist CASCADE",
    "DROP FUNCTION telemetry_metrics_unused CASCADE",
]


def _metric(**options):
    return models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="telemetry.metric", **options)


class Migration(migrations.Migration):
    """Checks once per statement that the metrics of blocks and chunks exist: thousands of rows of a
    hundred metrics arrive at once, and a foreign key would look up each row's metric again."""

    dependencies = [("telemetry", "0004_taken_back")]

    operations = [
        migrations.AlterField("block", "metric", _metric(db_constraint=False)),
        migrations.AlterField("chunk", "metric", _metric(db_constraint=False)),
        migrations.RunSQL(_MADE, _UNMADE),
    ]
