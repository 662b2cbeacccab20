"""What the docs have people write in a chat is given to the real conversation, which must do it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bot.channels.chat.commands import Command, parse
from bot.channels.chat.texts import catalogue
from tests.support.docs import CHINESE, PAGES, ROOT, blocks, spans

if TYPE_CHECKING:
    from tests.support.stage import Stage
    from tests.support.talker import Talker

FORMS = {"commands.md", "commands.zh-CN.md"}  # the reference lists the forms of commands, not commands
# What begins with a slash between backticks and is written in no chat.
NO_COMMANDS = {
    "/data": "a folder",
    "/healthz": "a path of the web server",
    "/readyz": "a path of the web server",
    "/metrics": "a path of the web server",
    "/mcp": "a path of the MCP server",
    "/newbot": "a command of another bot",
}
# The name of a command in a sentence: alone it is answered with how it is used.
NAMES = {"/run", "/plan", "/schedule add", "/devices connect", "/devices 连接"}
# What this desk cannot do, by how it begins: the error that says so.
REFUSED = {
    "/plan ": "errors.no_planning_here",
    "/answers #12": "errors.no_answer",
    "/schedule undo": "errors.nothing_to_undo",
    "/schedule add 每天9点": "errors.schedule_there",  # the same as on the English page
    "/kb add\n": "error.desk.double",  # the block before it adds the same
}
# What the words of the docs stand for on the stage.
STANDS_FOR = {
    "192.168.1.20:5555": "S1",
    "SERIAL": "S1",
    "序列号": "S1",
    "Counter": "S1",
    "前台": "S1",
    "your_bot": "desk_bot",
    "你的机器人": "desk_bot",
    "3f2a9c1b7d40": "a1b2",
    "…": "打开设置",
}


def messages(page: Path) -> list[str]:
    """What a page and its Chinese pair have people write, each once; lines that belong together are one message.

    What stands in the text comes first, because the blocks remove what it names.
    """
    both = [one for one in (page, page.with_suffix(CHINESE)) if one.exists()]
    found = []
    if page.name not in FORMS:
        found += [span for one in both for span in spans(one) if re.fullmatch(r"/[^\W\d]+(@\S+)?( .+)?", span)]
    for block in (block for one in both for block in blocks(one, "text", "") if block.startswith("/")):
        found += re.split(r"\n(?=/)", block.strip())
    return [message for message in dict.fromkeys(found) if message not in NO_COMMANDS]


def forms(page: Path) -> Iterator[str]:
    yield from (span for span in spans(page) if re.match(r"/[^\W\d]+( |$)", span) and span not in NO_COMMANDS)


CHATS = [page for page in PAGES if not page.name.endswith(CHINESE) and messages(page)]


def refusal(said: str) -> str:
    """The key of the text with which a command was refused or not understood; "" if it was done."""
    title = said.partition("\n")[0]
    return next((key for key, text in _REFUSALS.items() if text.fullmatch(title)), "")


def _pattern(text: str) -> re.Pattern[str]:
    """What matches the first line of a text, whatever is filled in."""
    parts = re.split(r"(\{[^}]*\})", text.partition("\n")[0])
    return re.compile("".join(".+?" if part.startswith("{") else re.escape(part) for part in parts), re.DOTALL)


_REFUSALS = {
    key: _pattern(text)
    for key, text in catalogue("en").items()
    if key.startswith(("errors.", "error.", "usage."))
    or key.endswith((".usage", "_usage"))
    or key in ("help.unknown", "help.nearest")
    if re.sub(r"\{[^}]*\}|\W", "", text.partition("\n")[0])
}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    from bot.desk.desk import Desk
    from knowledge.entries import Entry
    from tests.support.knowledge import open_knowledge
    from tests.support.stage import open_stage

    async with open_stage(tmp_path / "stage.db") as made:
        store = await open_knowledge(tmp_path / "knowledge.db")
        await store.add(Entry(id="a1b2", question="怎么退货", answer="七天内可退"))
        made.desk = Desk(replace(made.desk.context, store=store))
        yield made
        await store.close()


@pytest.fixture
async def owner(stage: Stage) -> Talker:
    """An owner, who speaks English, at a desk with three people, three schedules and a run."""
    from tests.support.talker import talker

    person = talker(stage.desk, "11", "Owner", "en")
    await person.say("/start 4711")
    for user in (12, 13):
        await stage.join(user, "小李")
    for before in ("/contacts add 小王 #老客户", "/run 打开QQ"):
        assert not refusal(await person.say(before))
    return person


@pytest.mark.parametrize("page", CHATS, ids=lambda page: str(page.relative_to(ROOT)))
async def test_each_message_is_understood(page: Path, owner: Talker) -> None:
    for hour in (8, 7):
        assert not refusal(await owner.say(f"/schedule add every day at {hour} 打开QQ"))
    # The schedule 3 of that page is a watch.
    third = "/watch 小王" if page.name == "watch.md" else "/schedule add every day at 6 打开QQ"
    assert not refusal(await owner.say(third))
    wrong = []
    for message in messages(page):
        written = message
        for said, meant in STANDS_FOR.items():
            written = written.replace(said, meant)
        answer = await owner.say(written)
        expected = next((key for begin, key in REFUSED.items() if written.startswith(begin)), "")
        if message in NAMES:
            expected = f"usage.{'_'.join(message[1:].replace('连接', 'connect').split()).removesuffix('_add')}"
        if not answer or refusal(answer) not in ("", expected):
            wrong.append((message, refusal(answer), answer))
    assert wrong == []


@pytest.mark.parametrize("name", sorted(FORMS))
def test_each_form_in_the_reference_begins_with_a_command(name: str) -> None:
    found = list(forms(ROOT / "docs" / "reference" / name))
    assert len(found) > 60
    assert [form for form in found if not isinstance(parse(form), Command)] == []


def test_nothing_is_left_out_that_no_page_names() -> None:
    everything = {span for page in PAGES for span in spans(page)}
    assert NO_COMMANDS.keys() | NAMES <= everything
    written = [message for page in CHATS for message in messages(page)]
    assert [begin for begin in REFUSED if not any(message.startswith(begin) for message in written)] == []
    assert [word for word in STANDS_FOR if not any(word in message for message in written)] == []


def test_what_is_not_understood_is_noticed() -> None:
    assert len(_REFUSALS) > 300
    assert refusal("There is no command /sweeep. Did you mean /sweep?\nmore") == "help.nearest"
    assert refusal("Schedule #3 added") == ""
