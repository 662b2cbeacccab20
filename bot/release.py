"""Which release this is."""

from __future__ import annotations

from importlib import metadata


def release() -> str:
    """As it is told to others and written into what is kept; "" where the distribution is not installed."""
    try:
        return metadata.version("phonedesk")
    except metadata.PackageNotFoundError:
        return ""
