from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "webapp.telemetry"
    label = "telemetry"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Counts the attempts by which datasets rate their problems."""
        from webapp.datasets.difficulty import count_by
        from webapp.telemetry.attempts import attempts_on

        count_by(attempts_on)
