"""Commands as a shell calls them, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.channels.cli.main import app
from tests.support.environment import without_settings


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("PHONEDESK_TIMEZONE", "Asia/Shanghai")
    monkeypatch.setenv("PHONEDESK_LANG", "en")


def call(*args: str, typed: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, args, input=typed)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr
