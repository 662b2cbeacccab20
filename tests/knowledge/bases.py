"""What an import is planned against, where a test has no store."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.entries import Entry, Related


def as_related(entries: Sequence[Entry]) -> Related:
    """All that a base holds, whatever the rows are about."""
    return Related(tuple(entries), frozenset(entry.id for entry in entries))
