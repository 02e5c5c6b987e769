from django.apps import AppConfig


class RegistryConfig(AppConfig):
    name = "webapp.registry"
    label = "registry"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connects the receiver that withdraws pending promotions on a loss of access, and provides
        the models that runs start from."""
        from webapp.experiments.run_settings.registered_models import provide
        from webapp.registry import promotion  # noqa: F401
        from webapp.registry.run_models import Registry

        provide(Registry())
