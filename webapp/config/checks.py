"""System checks for deployment mistakes; `manage.py check --deploy` runs them all."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from engine.config.pretrained import CatalogueError, pretrained_models
from webapp.config.private_files import is_private

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@register(Tags.security, deploy=True)
def hosts_are_named(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A wildcard host would let any site's page open our websocket with a user's cookies."""
    if "*" in settings.ALLOWED_HOSTS:
        return [
            Error(
                "GROVE_ALLOWED_HOSTS contains *, so the websocket accepts every origin.",
                hint="List the host names under which Grove is reached.",
                id="grove.E001",
            )
        ]
    return []


@register(Tags.security, deploy=True)
def queue_is_shared(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Web and workers on several machines do not share a folder."""
    if settings.BROKER_URL.startswith("filesystem") and os.environ.get("DATABASE_URL"):
        return [
            Warning(
                "DATABASE_URL is set but the queue is a folder on this machine.",
                hint="Set BROKER_URL=redis://... if workers run elsewhere.",
                id="grove.W002",
            )
        ]
    return []


@register(Tags.security, deploy=True)
def proxy_is_named(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Without a trusted proxy every request seems to lack TLS and to come from the proxy."""
    if settings.GROVE_HTTPS and not settings.TRUSTED_PROXIES:
        return [
            Warning(
                "GROVE_HTTPS is set but no proxy is trusted, so forwarded requests are redirected.",
                hint="Set GROVE_TRUSTED_PROXIES to the address of the proxy.",
                id="grove.W004",
            )
        ]
    return []


@register(Tags.security, deploy=True)
def database_is_maintained(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The embedded Postgres comes as a wheel, which is published later than its security releases,
    and is replaced only with the other packages."""
    is_shared = settings.GROVE_HTTPS or not _LOOPBACK.issuperset(settings.ALLOWED_HOSTS)
    if os.environ.get("DATABASE_URL") or not is_shared:
        return []
    return [
        Warning(
            "DATABASE_URL is not set: a site that others reach stores its data in the embedded "
            "Postgres, which lags behind the security releases of Postgres.",
            hint="Set DATABASE_URL=postgresql://... of a server that is kept up to date.",
            id="grove.W007",
        )
    ]


@register(Tags.files)
def var_is_writable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Runs, keys and the embedded services are stored under GROVE_VAR."""
    if os.access(settings.GROVE_VAR, os.W_OK | os.X_OK):
        return []
    return [
        Error(
            f"GROVE_VAR = {settings.GROVE_VAR} cannot be written.",
            hint="Create the directory and make this user its owner, or set GROVE_VAR.",
            id="grove.E003",
        )
    ]


@register(Tags.files)
def catalogue_is_valid(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Without a valid catalogue no pretrained model can be added, nor named by `package:NAME`."""
    try:
        pretrained_models()
    except CatalogueError as error:
        return [Error(str(error), hint="Mend the file, or unset the variable.", id="grove.E005")]
    return []


@register(Tags.security)
def var_is_private(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Only the owner of the directory can remove other accounts' access."""
    if not settings.GROVE_VAR.is_dir() or is_private(settings.GROVE_VAR):
        return []
    return [
        Warning(
            f"GROVE_VAR = {settings.GROVE_VAR} can be entered by other accounts.",
            hint=f"Run as its owner: chmod 700 {settings.GROVE_VAR}",
            id="grove.W006",
        )
    ]
