import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('experiments', '0007_comments_changed'),
        ('projects', '0002_workspaces_and_tokens'),
    ]

    operations = [
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='projects.workspace')),
                ('at', models.DateTimeField()),
            ],
        ),
    ]
