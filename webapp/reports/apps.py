from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "webapp.reports"

    def ready(self) -> None:
        """Connects the revocation of links whose makers lost the right to share."""
        from webapp.reports import revocation  # noqa: F401
