from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "webapp.alerts"
    label = "alerts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connects the evaluation of rules, and the end of what people may no longer have."""
        from webapp.alerts import revocation, triggers  # noqa: F401
