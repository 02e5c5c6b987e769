"""Emptying of the tables after a test whose transactions were committed.

Invariant: every table that Django empties is empty, regardless of triggers and foreign keys, and so
are those that it does not know.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql.operations import DatabaseOperations

WITHOUT_MODEL = ("accounts_allowance",)
"""Tables that a migration makes in SQL."""
_EMPTY = """
DO $$
DECLARE name text;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOREACH name IN ARRAY ARRAY[{names}] LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
END $$
"""
"""Run as a replica, which checks neither foreign keys nor triggers: all rows are deleted anyway."""


class EmptyingByRows(DatabaseOperations):
    """Deletes rows, of which a test leaves few. TRUNCATE would recreate all files of all tables and
    indexes, hundreds of them after every test."""

    def sql_flush(
        self,
        style: Any,
        tables: list[str],
        *,
        reset_sequences: bool = False,
        allow_cascade: bool = False,
    ) -> list[str]:
        if reset_sequences or not tables:
            return super().sql_flush(
                style, tables, reset_sequences=reset_sequences, allow_cascade=allow_cascade
            )
        names = ", ".join(f"'{name}'" for name in sorted({*tables, *WITHOUT_MODEL}))
        return [_EMPTY.format(names=names)]
