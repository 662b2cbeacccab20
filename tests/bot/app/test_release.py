"""How the program is called from where it was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.release import program
from tests.support.environment import in_a_checkout


def test_a_name_that_a_shell_does_not_find_is_given_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = in_a_checkout(tmp_path, monkeypatch)
    assert program() == called
    monkeypatch.setenv("PATH", str((tmp_path / called).parent))
    assert program() == "phonedesk"
    monkeypatch.setattr("sys.argv", ["/somewhere/bot/__main__.py"])
    assert program() == "phonedesk"
