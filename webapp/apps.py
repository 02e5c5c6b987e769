from django.apps import AppConfig


class WebappConfig(AppConfig):
    """App of commands, templates and system checks that belong to no other app."""

    name = "webapp"

    def ready(self) -> None:
        from webapp.config import checks  # noqa: F401
