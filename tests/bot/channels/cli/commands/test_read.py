"""``phonedesk read``: output, the marked picture, and exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from PIL import Image
from typer.testing import CliRunner

from agent_core import extras
from agent_core.devices.base import Node
from agent_core.perception.ocr import OcrEngine
from bot.channels.cli.main import app
from tests.agent_core.perception.support import Look, look, me, open_chat, scenario, them
from tests.support.ocr import needs_ocr


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHONEDESK_LANG", "en")


async def chat_in_front() -> Look:
    return await look(await open_chat(scenario(them("在吗", 300), me("在的", 200), them("能带上高铁吗？", 20))))


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    """``chat.png`` and ``chat.xml`` of a chat with an open question."""
    seen = asyncio.run(chat_in_front())
    seen.frame.image.save(tmp_path / "chat.png")
    (tmp_path / "chat.xml").write_text(dump(seen.nodes), encoding="utf-8")
    return tmp_path / "chat.png"


def dump(nodes: Sequence[Node]) -> str:
    def line(node: Node) -> str:
        box = node.box
        fields = {
            "text": node.text,
            "content-desc": node.description,
            "resource-id": node.resource_id,
            "class": node.class_name,
            "package": node.package,
            "bounds": f"[{box.left},{box.top}][{box.right},{box.bottom}]",
        }
        return f"<node {' '.join(f'{name}={quoteattr(value)}' for name, value in fields.items())}/>"

    return f"<?xml version='1.0'?><hierarchy>{''.join(map(line, nodes))}</hierarchy>"


def call(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["read", *args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


@needs_ocr
@pytest.mark.parametrize("tree", [[], ["--tree", "chat.xml"]], ids=["picture", "tree"])
def test_what_is_read_as_json_and_for_people(shot: Path, tree: list[str]) -> None:
    code, out, err = call("chat.png", "--app", "qq", "--json", *tree)
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert set(told) == {"page", "title", "messages", "question", "input", "send", "rows", "doubts"}
    assert told["title"] == {"text": "11", "sure": True, "group": False}
    assert [(message["side"], message["text"]) for message in told["messages"]] == [
        ("them", "在吗"),
        ("me", "在的"),
        ("them", "能带上高铁吗？"),
    ]
    assert (told["page"], told["question"], told["rows"]) == ("chat", [2], [])
    code, out, _ = call("chat.png", "--app", "QQ", *tree)
    assert code == 0
    assert out.splitlines()[:6] == [
        "Page: QQ chat",
        "Title: 11",
        "1. them · text: 在吗",
        "2. me · text: 在的",
        "▶ 3. them · text: 能带上高铁吗？",
        "To answer: message 3",
    ]


@needs_ocr
def test_the_marked_picture(shot: Path, tmp_path: Path) -> None:
    assert call("chat.png", "--app", "qq", "--marks", "seen.png")[0] == 0
    with Image.open(tmp_path / "seen.png") as marked, Image.open(shot) as plain:
        assert (marked.format, marked.size) == ("PNG", plain.size)
        reds = [
            sum(count for count, color in image.convert("RGB").getcolors(1 << 24) or () if color == (255, 45, 85))
            for image in (plain, marked)
        ]
    assert reds[0] == 0 < 1000 < reds[1]
    code, _, err = call("chat.png", "--app", "qq", "--marks", "nowhere/seen.png")
    assert code == 2
    assert "nowhere/seen.png" in err


def test_a_tree_with_texts_is_enough(shot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OcrEngine, "available", staticmethod(lambda: False))
    code, out, _ = call("chat.png", "--app", "qq", "--tree", "chat.xml", "--json")
    assert (code, json.loads(out)["question"]) == (0, [2])
    code, out, err = call("chat.png", "--app", "qq", "--json")
    assert (code, out) == (2, "")
    assert "[ocr]" in err
    assert extras.install_command("ocr") in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["chat.png"], "--app with one of: qq, wechat"),
        (["chat.png", "--app", "line"], "“line”"),
        (["nothing.png", "--app", "qq"], "nothing.png cannot be read: no such folder or file"),
        ([".", "--app", "qq"], "that is a folder"),
        (["chat.xml", "--app", "qq"], "chat.xml is not a whole PNG or JPEG"),
        (["small.png", "--app", "qq"], "small.png measures 20×30"),
        (["chat.png", "--app", "qq", "--tree", "nothing.xml"], "nothing.xml cannot be read"),
        (["chat.png", "--app", "qq", "--tree", "chat.png"], "chat.png is not a whole dump"),
        (["chat.png", "--app", "qq", "--tree", "broken.xml"], "uiautomator dump"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_to_do(shot: Path, tmp_path: Path, args: list[str], said: str) -> None:
    Image.new("RGB", (20, 30)).save(tmp_path / "small.png")
    (tmp_path / "broken.xml").write_text("<?xml version='1.0'?><hierarchy><node></hierarchy>", encoding="utf-8")
    code, out, err = call(*args, "--json")
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) >= 2, "and what to do about it"


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    probe = (
        "import sys\nfrom bot.channels.cli.main import app\n"
        "try:\n    app(['read', 'nothing.png', '--app', 'qq'])\nexcept SystemExit as end:\n    print(end.code)\n"
        "print([name for name in ('rapidocr', 'onnxruntime', 'openai', 'telegram') if name in sys.modules])"
    )
    place = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])}
    command = [sys.executable, "-c", probe]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=place)
    assert done.stdout.split() == ["2", "[]"]
