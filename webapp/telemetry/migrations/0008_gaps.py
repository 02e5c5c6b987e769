import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('telemetry', '0007_logged'),
    ]

    operations = [
        migrations.CreateModel(
            name='Gap',
            fields=[
                ('pk', models.CompositePrimaryKey('metric_id', 'position', blank=True, editable=False, primary_key=True, serialize=False)),
                ('position', models.BigIntegerField()),
                ('seq', models.BigIntegerField()),
                ('step', models.BigIntegerField()),
                ('time', models.FloatField()),
                ('tokens', models.BigIntegerField()),
                ('nodes', models.BigIntegerField()),
                ('metric', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='telemetry.metric')),
            ],
        ),
    ]
