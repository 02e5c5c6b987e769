from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0011_tracking_added"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="traceparent",
            field=models.CharField(blank=True, db_default="", default="", max_length=55),
        ),
    ]
