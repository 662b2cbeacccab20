"""How the program is called from where it was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.release import program


def test_a_name_that_a_shell_does_not_find_is_given_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".venv" / "bin" / "phonedesk"
    file.parent.mkdir(parents=True)
    file.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(file), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == ".venv/bin/phonedesk"
    monkeypatch.setenv("PATH", str(file.parent))
    assert program() == "phonedesk"
    monkeypatch.setattr("sys.argv", ["/somewhere/bot/__main__.py"])
    assert program() == "phonedesk"
