"""Configuration of Django: settings, environment, URLs, REST, ASGI, Celery, system checks."""
