"""The workers' package as a Django app, for its commands: `up`, `demo` and `doctor`."""

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    name = "workers"
