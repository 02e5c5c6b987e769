from django.db import migrations

# Earlier frozen links stored means of steps; now a link stores, for each run, the last event before
# its creation.
UNTIL = """
UPDATE sharing_comparisonshare AS share
SET frozen = (share.frozen - 'curves') || jsonb_build_object('until', (
    SELECT jsonb_agg(coalesce((
        SELECT max(seq) FROM telemetry_event
        WHERE run_id = compared.run_id AND time <= share.created), 0) ORDER BY place)
    FROM unnest(share.runs) WITH ORDINALITY AS compared (run_id, place)))
WHERE jsonb_typeof(share.frozen) = 'object' AND NOT share.frozen ? 'until'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("sharing", "0002_comparisons"),
        ("telemetry", "0004_taken_back"),
    ]

    operations = [migrations.RunSQL(UNTIL, migrations.RunSQL.noop)]
