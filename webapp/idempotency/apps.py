from django.apps import AppConfig


class IdempotencyConfig(AppConfig):
    name = "webapp.idempotency"
    label = "once"
    default_auto_field = "django.db.models.BigAutoField"
