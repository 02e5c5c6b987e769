"""Removal of the runs' idempotency keys: `webapp.idempotency` stores all keys with responses."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0005_tags_notes_stars"),
        ("once", "0002_keys_of_all_kinds"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="experiment", name="request_made_once"),
        migrations.RemoveField(model_name="experiment", name="request_digest"),
        migrations.RemoveField(model_name="experiment", name="request_key"),
    ]
