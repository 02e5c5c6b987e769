"""Configuration of Django: settings, environment, URLs, REST, ASGI, system checks."""
