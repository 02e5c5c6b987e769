from django.apps import AppConfig


class ClosingConfig(AppConfig):
    name = "webapp.offboarding"
    label = "closing"  # of tables and permissions, which outlive the name of the folder
