from django.apps import AppConfig


class SearchesConfig(AppConfig):
    name = "webapp.searches"
    label = "searches"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Adds a search to the page of its run."""
        from webapp.experiments.presentation import add_page_part
        from webapp.searches.presentation import page_search

        add_page_part("search", page_search)
