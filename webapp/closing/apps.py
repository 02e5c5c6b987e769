from django.apps import AppConfig


class ClosingConfig(AppConfig):
    name = "webapp.closing"
