"""Django's configuration: settings, environment, URLs, REST routers, ASGI, Celery, system
checks.
"""
