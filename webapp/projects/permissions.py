"""Permissions: the one module that decides, for pages, REST and websockets, who may do what.

Invariants: an object that a user may not see does not exist for them (404); an action on a visible
object that they may not take is refused as such (403). Visibility is `visible_to` of the querysets
(`projects.models`). An action through a token requires both the token's scope and its user's role.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.core.exceptions import PermissionDenied

from webapp.accounts.models import Scope, User
from webapp.projects.models import Membership, Project, Role, Workspace


class Action(StrEnum):
    READ = "read"
    OPERATE = "operate"
    """Start, stop and resume runs."""
    REPORT = "report"
    """Send the events of a run whose engine runs elsewhere."""
    UPLOAD = "upload"
    """Continue an upload of one's own; to start it requires one of the next two."""
    ADD_DATASETS = "add-datasets"
    """Upload datasets, check and delete them."""
    ADD_MODELS = "add-models"
    """Upload and import models, edit their cards, request their evaluation."""
    SHARE = "share"
    """Create and revoke links by which a run is seen without an account."""
    ADD_PROJECT = "add-project"
    SHARE_PROJECT = "share-project"
    """Change who in the workspace sees a project."""
    MANAGE_MEMBERS = "manage-members"
    """Invite, remove, change roles, within `require_over`."""
    REQUEST_PROMOTION = "request-promotion"
    """Request that an alias be moved, where a second person decides."""
    PROMOTE = "promote"
    """Move aliases, and decide on the requests of others."""
    DELETE_MODELS = "delete-models"
    CHANGE_SECOND_PAIR = "change-second-pair"
    """Decide whether promotions take two people."""
    TRANSFER = "transfer"
    """Transfer the workspace to another owner."""
    CLOSE = "close"
    """Export a whole workspace, and delete it."""
    IMPORT = "import"
    """Import the zip of a workspace into it; into a new one of their own everybody may."""
    COMMENT = "comment"
    """Write comments on runs, and reports."""
    MODERATE = "moderate"
    """Remove what others wrote."""
    AUDIT = "audit"
    """Read who did what in a workspace."""
    DELETE_RUNS = "delete-runs"
    """Delete runs that have ended, with everything of them."""
    SET_RETENTION = "set-retention"
    """Decide how long a workspace keeps its runs."""
    MANAGE_ALERTS = "manage-alerts"
    """Decide what a project's alert rules look for, and where their notices go."""


@dataclass(frozen=True, slots=True)
class Rule:
    label: str
    roles: frozenset[Role]
    scopes: frozenset[Scope] = frozenset()
    """Any of these, or admin, allows it to a token."""
    creators_too: bool = False
    """Also the project's creator, if they may operate."""


_OPERATORS = frozenset({Role.OWNER, Role.MAINTAINER, Role.MEMBER})
_MANAGERS = frozenset({Role.OWNER, Role.MAINTAINER})
_OWNERS = frozenset({Role.OWNER})
_RULES: dict[Action, Rule] = {
    Action.READ: Rule("see it", frozenset(Role), frozenset({Scope.RUNS_READ, Scope.RUNS_WRITE})),
    Action.OPERATE: Rule("start, stop or resume runs", _OPERATORS, frozenset({Scope.RUNS_WRITE})),
    Action.REPORT: Rule("send events of its runs", _OPERATORS, frozenset({Scope.TELEMETRY_WRITE})),
    Action.UPLOAD: Rule(
        "upload files", _OPERATORS, frozenset({Scope.DATASETS_WRITE, Scope.REGISTRY_WRITE})
    ),
    Action.ADD_DATASETS: Rule("add datasets", _OPERATORS, frozenset({Scope.DATASETS_WRITE})),
    Action.ADD_MODELS: Rule("add models", _OPERATORS, frozenset({Scope.REGISTRY_WRITE})),
    Action.SHARE: Rule("share it by links", _OPERATORS, frozenset({Scope.RUNS_WRITE})),
    Action.ADD_PROJECT: Rule("create projects", _OPERATORS),
    Action.SHARE_PROJECT: Rule("change who sees it", _OWNERS, creators_too=True),
    Action.MANAGE_MEMBERS: Rule("manage its members", _MANAGERS),
    Action.REQUEST_PROMOTION: Rule(
        "request promotions", _OPERATORS, frozenset({Scope.REGISTRY_PROMOTE})
    ),
    Action.PROMOTE: Rule("promote models", _MANAGERS, frozenset({Scope.REGISTRY_PROMOTE})),
    Action.DELETE_MODELS: Rule("delete models", _MANAGERS, frozenset({Scope.REGISTRY_WRITE})),
    Action.CHANGE_SECOND_PAIR: Rule("decide how models are promoted", _OWNERS),
    Action.TRANSFER: Rule("transfer it", _OWNERS),
    Action.COMMENT: Rule("write comments and reports", _OPERATORS, frozenset({Scope.RUNS_WRITE})),
    Action.MODERATE: Rule("remove what others wrote", _MANAGERS, frozenset({Scope.RUNS_WRITE})),
    Action.CLOSE: Rule("export or delete it", _OWNERS),
    Action.IMPORT: Rule("import into it", _OWNERS),
    Action.AUDIT: Rule("see who did what", _OWNERS),
    Action.DELETE_RUNS: Rule("delete runs", _MANAGERS, frozenset({Scope.RUNS_WRITE})),
    Action.SET_RETENTION: Rule("decide how long it keeps runs", _OWNERS),
    Action.MANAGE_ALERTS: Rule("manage its alerts", _MANAGERS),
}


def may(user: User, action: Action, resource: Project | Workspace) -> bool:
    """Whether the role of `user` there, and the token they act through, allow `action`."""
    if not (user.is_active and has_scope(user, action)):
        return False
    rule = _RULES[action]
    path = "workspace__memberships" if isinstance(resource, Project) else "memberships"
    roles = rule.roles
    if rule.creators_too and isinstance(resource, Project) and resource.created_by_id == user.pk:
        roles |= _OPERATORS
    held = {f"{path}__user": user.pk, f"{path}__role__in": roles}
    return type(resource).objects.visible_to(user).filter(pk=resource.pk, **held).exists()


def require(user: User, action: Action, resource: Project | Workspace) -> None:
    """Raises `PermissionDenied` unless `may`."""
    require_scope(user, action)
    if not may(user, action, resource):
        team = resource.workspace if isinstance(resource, Project) else resource
        label = _RULES[action].label
        raise PermissionDenied(f"Your role in {team} does not allow you to {label}; ask an owner.")


def has_scope(user: User, action: Action) -> bool:
    """Whether the token that `user` acts through, if any, allows `action` somewhere."""
    return user.token is None or bool(
        {Scope.ADMIN, *_RULES[action].scopes} & set(user.token.scopes)
    )


def require_scope(user: User, *actions: Action) -> None:
    """Raises `PermissionDenied` unless `has_scope` of one of the actions."""
    if not any(has_scope(user, action) for action in actions):
        scopes = " or ".join(sorted({Scope.ADMIN}.union(*(_RULES[one].scopes for one in actions))))
        raise PermissionDenied(f"This token does not allow it: create one with the scope {scopes}.")


def grantable_scopes(role: Role) -> list[Scope]:
    """The scopes that a token of a user in this role may have: those that allow something that the
    role allows and `runs:read` does not. Each action is checked against the role again."""
    grantable = {Scope.RUNS_READ}
    for action, rule in _RULES.items():
        if action is not Action.READ and role in rule.roles:
            grantable |= rule.scopes or {Scope.ADMIN}
    return [scope for scope in Scope if scope in grantable]


def useful_scopes() -> list[Scope]:
    """The scopes that some operation requires: others would promise what no operation does yet."""
    used = {Scope.ADMIN}.union(*(rule.scopes for rule in _RULES.values()))
    return [scope for scope in Scope if scope in used]


def role_in(user: User, workspace: Workspace) -> Role | None:
    """The role of `user` in the workspace; None for a non-member."""
    membership = Membership.objects.filter(workspace=workspace.pk, user=user.pk).first()
    return Role(membership.role) if membership else None


def givable_roles(user: User, workspace: Workspace) -> list[Role]:
    """Roles that `user` may give to others: an owner all, a maintainer those below their own."""
    if not may(user, Action.MANAGE_MEMBERS, workspace):
        return []
    own = role_in(user, workspace)
    return [role for role in Role if own is Role.OWNER or own.outranks(role)]


def require_over(user: User, workspace: Workspace, *roles: Role) -> None:
    """Raises `PermissionDenied` unless `user` may give and take these roles."""
    require(user, Action.MANAGE_MEMBERS, workspace)
    if beyond := set(roles) - set(givable_roles(user, workspace)):
        raise PermissionDenied(
            f"Only an owner of {workspace} decides who is {' or '.join(sorted(beyond))}."
        )


def operable_projects(user: User) -> list[Project]:
    """Projects in which `user` may start runs, by name."""
    return permitted_projects(user, Action.OPERATE)


def permitted_projects(user: User, action: Action) -> list[Project]:
    """Projects in which the role of `user` allows `action`, by name."""
    if not has_scope(user, action):
        return []
    mine = Membership.objects.filter(user=user.pk, role__in=_RULES[action].roles)
    return list(
        Project.objects.visible_to(user)
        .filter(workspace__in=mine.values("workspace"))
        .select_related("workspace")
        .order_by("name")
    )
