from django.apps import AppConfig


class SharingConfig(AppConfig):
    name = "webapp.sharing"
    label = "sharing"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connects the revocation of links whose makers lost the right to share."""
        from webapp.sharing import revocation  # noqa: F401
