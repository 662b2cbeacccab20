"""``phonedesk apps export`` and ``phonedesk virtual-phone --kit``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_core.kits import load_kit
from bot.channels.cli.main import app
from simulator.phone.kit import KitPhone
from simulator.phone.server import serve
from tests.kits.make import FOLDER, them
from tests.support.adb import adb_server
from tests.support.drawing import draw
from tests.support.ocr import needs_ocr


def call(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(args))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHONEDESK_LANG", "en")


@pytest.mark.rotating(parts=3)
@needs_ocr
def test_export_writes_a_file_that_the_desk_can_show(tmp_path: Path) -> None:
    drawn = draw("qq-plain", "王小二", [them("顺丰单号", 600)])
    drawn.image.save(tmp_path / "chat.png")
    code, out, err = call("apps", "export", "chat.png", "--app", "qq", "--out", "mine.kit.json")
    assert (code, err) == (0, "")
    assert "mine.kit.json" in out
    assert "1 message." in out
    kit = load_kit(tmp_path / "mine.kit.json")
    assert "顺丰" not in kit.model_dump_json()
    code, out, _ = call("apps", "export", "chat.png", "--app", "qq", "--json")
    assert code == 0
    assert json.loads(out) == {"file": "qq.kit.json", "texts": len(kit.texts), "page": "chat", "differs": []}


def test_what_is_no_screen_is_refused(tmp_path: Path) -> None:
    assert call("apps", "export", "--app", "qq")[0] == 2
    assert call("apps", "export", "none.png", "--app", "qq")[0] == 2
    assert call("apps", "export", "none.png")[0] == 2
    (tmp_path / "bad.kit.json").write_text("{}", encoding="utf-8")
    code, _, err = call("virtual-phone", "--kit", "bad.kit.json")
    assert code == 2
    assert "bad.kit.json" in err
    code, _, err = call("virtual-phone", "--kit", "bad.kit.json", "--look", "qq-plain")
    assert code == 2


@pytest.mark.rotating(parts=2)
@needs_ocr
async def test_export_takes_what_a_phone_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit = load_kit(FOLDER / "qq-plain-chat.kit.json")
    async with serve(phone=KitPhone(kit)) as running, adb_server() as adb:
        monkeypatch.setenv("PHONEDESK_DEVICE__ADB_PORT", str(adb.port))
        monkeypatch.setenv("PHONEDESK_DATA_DIR", str(tmp_path / "data"))
        args = ("apps", "export", "--app", "qq", "--device", running.address, "--out", "seen.kit.json")
        code, _, err = await asyncio.to_thread(call, *args)
        assert (code, err) == (0, "")
    seen = load_kit(tmp_path / "seen.kit.json")
    assert seen.version == kit.version
    assert seen.nodes is not None
    assert [m.kind for m in seen.page.messages] == [m.kind for m in kit.page.messages]
