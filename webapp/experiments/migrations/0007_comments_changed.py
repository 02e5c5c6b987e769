from django.db import migrations, models


class Migration(migrations.Migration):
    """A run's row says when its comments change, so that its stream can."""

    dependencies = [("experiments", "0006_no_keys")]

    operations = [
        migrations.AddField("run", "comments_changed", models.PositiveIntegerField(default=0)),
    ]
