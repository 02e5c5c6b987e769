"""Idempotency keys carried over from other tables: their requests are not executed again."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_KEPT_ELSEWHERE = (
    ("experiments", "Experiment"),
    ("registry", "Model"),
    ("registry", "ModelVersion"),
    ("artifacts", "Upload"),
)


def take_over(apps, schema_editor):
    kept = apps.get_model("once", "KeptAnswer")
    for app, name in _KEPT_ELSEWHERE:
        rows = apps.get_model(app, name).objects.exclude(request_key=None).exclude(created_by=None)
        kept.objects.bulk_create(
            [
                kept(user_id=user, key=key, status=201, tells=False)
                for user, key in rows.values_list("created_by", "request_key")
            ],
            ignore_conflicts=True,
        )
    # The index that this migration creates last cannot wait for keys that are checked later.
    schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_allowances"),
        ("artifacts", "0001_uploads"),
        ("experiments", "0005_tags_notes_stars"),
        ("registry", "0004_uses_of_earlier_runs"),
        ("once", "0001_kept_answers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="keptanswer",
            name="projects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="keptanswer",
            name="token",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.apitoken",
            ),
        ),
        migrations.RunPython(take_over, migrations.RunPython.noop),
    ]
