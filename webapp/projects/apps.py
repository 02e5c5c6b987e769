from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    name = "webapp.projects"
    label = "projects"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from webapp.http.callers import see_by
        from webapp.projects.selectors import ids_visible_to

        see_by(ids_visible_to)
