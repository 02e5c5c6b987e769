from django.db import migrations, models


class Migration(migrations.Migration):
    """Records changes of a run's comments in its row, so that its stream can report them."""

    dependencies = [("experiments", "0006_no_keys")]

    operations = [
        migrations.AddField("run", "comments_changed", models.PositiveIntegerField(default=0)),
    ]
