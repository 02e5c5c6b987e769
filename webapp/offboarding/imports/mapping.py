"""Objects and people of an export, and what they are here.

Invariants: a row gets a new id, and every reference to it follows; a reference to a row that the
export lacks is refused. A person is the account of the same name only where the caller says so:
text in the name of others cannot be imported by anybody but the server's operator.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

from webapp.accounts.models import User
from webapp.offboarding.errors import ImportRefused
from webapp.offboarding.imports.archive import AGAIN, Archive
from webapp.offboarding.imports.records import Person


class Ids:
    """New object by kind and old id."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[Hashable, Any]] = {}

    def add(self, member: str, kind: str, old: Hashable, new: Any) -> Any:
        of_kind = self._objects.setdefault(kind, {})
        if old in of_kind:
            raise ImportRefused(member, f"has the {kind} {old} twice. {AGAIN}")
        of_kind[old] = new
        return new

    def get(self, member: str, kind: str, old: Hashable | None) -> Any:
        """Returns the object; None for None. Raises `ImportRefused` if there is none."""
        if old is None:
            return None
        if (new := self.find(kind, old)) is None:
            raise ImportRefused(
                member,
                f"refers to the {kind} {old}, which is not in the file: the workspace changed "
                "while it was exported. Export it again.",
            )
        return new

    def find(self, kind: str, old: Hashable) -> Any:
        return self._objects.get(kind, {}).get(old)

    def olds(self, kind: str) -> Collection[Hashable]:
        """Returns the old ids of a kind."""
        return self._objects.get(kind, {}).keys()

    def numbers(self) -> dict[str, dict[str, Any]]:
        """Returns the new id, as text, by kind and old id."""
        return {
            kind: {str(old): str(new.pk) for old, new in objects.items()}
            for kind, objects in self._objects.items()
        }


class People:
    """Who the people of an export are here: an account of the same name if `known`, else the
    importer, and then texts name the author."""

    def __init__(self, archive: Archive, importer: User, *, known: bool):
        self.importer = importer
        self._names = {one.id: one.name for one in archive.rows("people.jsonl", Person)}
        names = set(self._names.values()) if known else {importer.username}
        accounts = User.objects.filter(username__in=names)
        self._accounts = {one.username: one for one in accounts}

    def user(self, member: str, old: int) -> User:
        return self._accounts.get(self.name(member, old), self.importer)

    def maybe(self, member: str, old: int | None) -> User | None:
        return None if old is None else self.user(member, old)

    def name(self, member: str, old: int) -> str:
        if old not in self._names:
            raise ImportRefused(member, f"refers to the person {old}, who is not in people.jsonl.")
        return self._names[old]

    def signed(self, member: str, text: str, old: int | None) -> str:
        """Returns the text, with its author's name where that person has no account here."""
        if old is None or (name := self.name(member, old)) in self._accounts:
            return text
        return f"By `{name}`:\n\n{text}" if text else f"By `{name}`."

    def mapping(self) -> dict[str, str]:
        """Returns the account here by name there."""
        return {
            name: self._accounts.get(name, self.importer).username for name in self._names.values()
        }
