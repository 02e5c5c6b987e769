import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0003_barred_invitations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="QueuePlace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("queue", models.CharField(max_length=20)),
                ("work", models.CharField(max_length=64)),
                ("is_waiting", models.BooleanField(default=False)),
                ("since", models.DateTimeField(null=True)),
                ("renewed_at", models.DateTimeField()),
                ("served_at", models.DateTimeField(null=True)),
                ("user", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
                ("workspace", models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="projects.workspace")),
            ],
            options={
                "indexes": [models.Index(fields=["queue", "renewed_at"], name="queue_renewed")],
                "constraints": [models.UniqueConstraint(fields=("queue", "user", "work"), name="one_place_per_work")],
            },
        ),
    ]
