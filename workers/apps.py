"""The workers' room as a Django app, for its commands: `up` and `demo`."""

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    name = "workers"
