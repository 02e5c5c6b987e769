"""Removal of idempotency keys: `webapp.idempotency` stores them with the responses."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("artifacts", "0001_uploads"),
        ("once", "0002_keys_of_all_kinds"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="upload", name="upload_requested_once"),
        migrations.RemoveField(model_name="upload", name="request_digest"),
        migrations.RemoveField(model_name="upload", name="request_key"),
    ]
