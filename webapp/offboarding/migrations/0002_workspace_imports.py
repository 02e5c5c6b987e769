import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('closing', '0001_exports'),
        ('projects', '0004_queue_places'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='WorkspaceImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('source', models.CharField(max_length=100)),
                ('made', models.DateTimeField(auto_now_add=True)),
                ('ids', models.JSONField()),
                ('people', models.JSONField()),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='projects.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'digest'), name='imported_once')],
            },
        ),
    ]
