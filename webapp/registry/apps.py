from django.apps import AppConfig


class RegistryConfig(AppConfig):
    name = "webapp.registry"
    label = "registry"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connects the receiver that withdraws pending promotions on a loss of access."""
        from webapp.registry import promotion  # noqa: F401
