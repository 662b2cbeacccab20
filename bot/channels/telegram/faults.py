"""Whose fault it is that something of ours failed."""

from __future__ import annotations

from PIL import UnidentifiedImageError
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout


def is_away(error: Exception) -> bool:
    """Whether the database was not reached: later it will be. What it refuses, or a picture that is none, stays so."""
    if isinstance(error, DBAPIError):
        return not isinstance(error, IntegrityError | DataError | ProgrammingError)
    return isinstance(error, OSError | PoolTimeout) and not isinstance(error, UnidentifiedImageError)
