from django.apps import AppConfig


class WebappConfig(AppConfig):
    """The house itself: commands, templates and system checks that belong to no one app."""

    name = "webapp"

    def ready(self) -> None:
        from webapp.config import checks  # noqa: F401
