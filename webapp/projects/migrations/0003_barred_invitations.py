import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projects", "0002_workspaces_and_tokens")]

    operations = [
        migrations.AddField(
            model_name="invitation",
            name="barred",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list, size=None
            ),
        ),
    ]
