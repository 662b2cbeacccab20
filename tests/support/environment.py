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


def in_a_checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let this process be one that was called by its path, as a shell does not find it; return that path."""
    file = folder / ".venv" / "bin" / "phonedesk"
    file.parent.mkdir(parents=True)
    file.touch(mode=0o755)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", [str(file), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    return ".venv/bin/phonedesk"
