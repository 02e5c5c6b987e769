"""Table in which `webapp.http.rate_limits` counts. Its contents are worthless after a crash."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_counts")]

    operations = [
        migrations.RunSQL(
            """
            CREATE UNLOGGED TABLE accounts_allowance (
                caller varchar(200) PRIMARY KEY,
                full_at timestamp with time zone NOT NULL
            );
            """,
            "DROP TABLE accounts_allowance",
        ),
    ]
