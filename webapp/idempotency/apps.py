from django.apps import AppConfig


class OnceConfig(AppConfig):
    name = "webapp.idempotency"
    label = "once"
    default_auto_field = "django.db.models.BigAutoField"
