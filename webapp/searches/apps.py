from django.apps import AppConfig


class SearchesConfig(AppConfig):
    name = "webapp.searches"
    label = "searches"
    default_auto_field = "django.db.models.BigAutoField"
