from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from webapp.accounts.callers import identify
        from webapp.http.callers import identify_by

        identify_by(identify)
