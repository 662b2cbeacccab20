"""Commands as they are typed in this terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import typer

from agent_core.errors import ConfigMissing, LearningFailed
from bot.app.doctor.texts import DoctorTexts
from bot.app.doctor.texts import catalogue as doctor_catalogue
from bot.app.setup.texts import SetupTexts
from bot.channels.chat.texts import LANGUAGES, Lang
from bot.channels.chat.texts import Texts as ChatTexts
from bot.channels.cli.commands.common import fail
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.texts import catalogue, typed


@pytest.fixture
def in_a_venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/phonedesk")])
    return ".venv/bin/phonedesk"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_command_that_is_advised_can_be_typed(lang: Lang, in_a_venv: str) -> None:
    terminal = texts(lang)
    shown = {f"help {key}": text for key, text in catalogue(lang).items()}
    shown |= {key: terminal.find(key, "") for key in ChatTexts(lang)._texts}
    shown |= {f"doctor {key}": typed(text) for key, text in doctor_catalogue(lang).items()}
    shown |= {f"setup {key}": typed(text) for key, text in SetupTexts(lang)._texts.items()}
    commands = {key.partition(".")[0].partition(" ")[0] for key in catalogue(lang) if key.endswith(".summary")}
    bare = {
        key: found[0]
        for key, text in shown.items()
        if (found := re.search(rf"(?<![\w./-])phonedesk ({'|'.join(commands)})\b", text))
    }
    assert bare == {}
    assert sum(in_a_venv in text for text in shown.values()) > 100
    assert f"{in_a_venv} doctor" in DoctorTexts(lang).get("output.mend_first", {"titles": "x"})
    assert SetupTexts(lang).get("next.serve").startswith(in_a_venv)
    assert terminal.get("question.left_open", id="phonedesk run").count(in_a_venv) == 2, "what is filled in stays"
    assert in_a_venv not in ChatTexts(lang).get("question.left_open", id="1"), "a chat has no such path"


@pytest.mark.parametrize("error", [ConfigMissing("x"), LearningFailed("x")])
def test_an_errors_own_advice_can_be_typed_too(
    error: ConfigMissing | LearningFailed,
    in_a_venv: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    with pytest.raises(typer.Exit):
        fail(error)
    said = capsys.readouterr().err
    assert f"{in_a_venv} " in said
    assert " phonedesk " not in said
