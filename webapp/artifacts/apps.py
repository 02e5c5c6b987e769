from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "webapp.artifacts"
    label = "artifacts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have what people made end with their right to it."""
        from webapp.artifacts import services  # noqa: F401
