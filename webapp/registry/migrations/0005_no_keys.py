"""Removal of the registry's idempotency keys: `webapp.idempotency` stores all keys with responses."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0004_uses_of_earlier_runs"),
        ("once", "0002_keys_of_all_kinds"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="model", name="model_requested_once"),
        migrations.RemoveConstraint(model_name="modelversion", name="version_requested_once"),
        migrations.RemoveField(model_name="model", name="request_digest"),
        migrations.RemoveField(model_name="model", name="request_key"),
        migrations.RemoveField(model_name="modelversion", name="request_digest"),
        migrations.RemoveField(model_name="modelversion", name="request_key"),
    ]
