import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('experiments', '0005_tags_notes_stars'),
    ]

    operations = [
        migrations.CreateModel(
            name='Search',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('problem', models.JSONField()),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='search', to='experiments.run')),
            ],
        ),
    ]
