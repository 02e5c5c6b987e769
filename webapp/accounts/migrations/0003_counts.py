"""Table of the cache (`settings.CACHES`) that counts towards the limits of sign-in."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_workspaces_and_tokens")]

    operations = [
        migrations.RunSQL(
            """
            CREATE TABLE IF NOT EXISTS accounts_cache (
                cache_key varchar(255) NOT NULL PRIMARY KEY,
                value text NOT NULL,
                expires timestamp with time zone NOT NULL
            );
            CREATE INDEX IF NOT EXISTS accounts_cache_expires ON accounts_cache (expires);
            """,
            "DROP TABLE accounts_cache",
        ),
    ]
