"""Permission to run models' programs without isolation: only a single user who confirms it twice.

Invariants: a run with `sandbox.allow_unsafe` is created only on a server whose every page shows the
banner, and in a workspace with one member; no created run requests limits per program above the
operator's caps.
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from engine.config.sandbox import SandboxConfig
from engine.config.schema import RunConfig
from engine.sandbox.limits import VARIABLES
from webapp.experiments.scheduling.states import NotAllowed
from webapp.projects.models import Membership, Project


def refuse_unsafe(config: RunConfig, project: Project) -> None:
    """Raises `ConfigError` if the run requests to go without isolation and may not."""
    if not config.sandbox.allow_unsafe:
        return
    if not settings.ALLOW_UNSAFE:
        reason = "programs would not be isolated; only a server with GROVE_ALLOW_UNSAFE=1 allows it"
    elif Membership.objects.filter(workspace=project.workspace_id).count() > 1:
        reason = (
            f"programs would not be isolated, and {project.workspace} is shared; "
            "use a workspace of your own"
        )
    else:
        return
    raise NotAllowed([{"path": "sandbox.allow_unsafe", "value": True, "reason": reason}])


def refuse_beyond_caps(config: RunConfig) -> None:
    """Raises `ConfigError` with each setting of the sandbox above the operator's caps. A default
    above them was not requested: the engine lowers it, and reports that."""
    problems = []
    for name, limit in settings.SANDBOX_CAPS.limits_of_settings().items():
        value = getattr(config.sandbox, name)
        if value > limit and value != SandboxConfig.model_fields[name].default:
            reason = f"this server's operator allows {limit:.12g} at most ({VARIABLES[name]})"
            problems.append({"path": f"sandbox.{name}", "value": value, "reason": reason})
    if problems:
        raise NotAllowed(problems)


def banner(request: HttpRequest) -> dict[str, bool]:
    """Returns the context of every page: whether it shows the warning."""
    return {"unsafe_allowed": settings.ALLOW_UNSAFE}
