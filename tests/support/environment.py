"""The environment that a test of settings begins with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

OURS = ("PHONEDESK_", "PHONE_AGENT_")


def without_settings(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Work in ``folder``, with none of our names in the environment."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
