from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    name = "webapp.artifacts"
    label = "artifacts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connects the discarding of uploads whose users lost the right to them."""
        from webapp.artifacts import services  # noqa: F401
