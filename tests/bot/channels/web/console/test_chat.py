"""The console's chat: the same commands, cards and buttons as in Telegram, in a chat of each person."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from html import unescape
from typing import Any

import pytest

from agent_core.session import Choice, Question, QuestionKind, Session
from bot.channels.chat import manual
from bot.channels.chat.cards import Card, Document
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Outgoing
from bot.channels.web.app import make_app, serving
from bot.channels.web.console.chat import CHAT, KEY, MOST_TEXT, ConsoleChat
from bot.channels.web.console.routes import add_console
from bot.desk.actors import Actor, ChatRef, Role
from bot.desk.context import CONSOLE
from scheduler.runs.human import StoredHuman
from storage.chats import ChatMessages
from storage.console_sessions import ConsoleSessions
from storage.events import Events
from storage.people import Audit
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.bot.channels.web.console.conftest import Browser, Shown
from tests.support.shop import PHONE

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


async def someone(shown: Shown, role: Role, name: str) -> tuple[Actor, Browser]:
    """Return a new person and their browser, logged in, in English."""
    member = await shown.busy.shop.person(role, name)
    browser = await shown.stranger()
    assert await browser.log_in("#" + await ConsoleSessions(shown.db).add_link(member.id, "en")) == 200
    return member, browser


async def write(browser: Browser, text: str, reply_to: int | None = None, *, key: str = "") -> dict[str, Any]:
    body = {"text": text, **({"reply_to": reply_to} if reply_to else {})}
    status, said, _ = await browser.ask("POST", CHAT, body, **{"Idempotency-Key": key})
    assert status == 200, said
    return dict(said)


async def tap(browser: Browser, message: int, action: str) -> dict[str, Any]:
    status, said, _ = await browser.ask("POST", f"{CHAT}/tap", {"message": message, "action": action})
    assert status == 200, said
    return dict(said)


async def log_of(browser: Browser) -> str:
    """Return what stands in the chat."""
    (log,) = re.findall(r'<div id="chat".*?\n</div>\n<form id="write"', await browser.page("/chat"), re.DOTALL)
    return unescape(str(log))


async def newest(browser: Browser, saying: str) -> int:
    """Return the number of the newest message that says this."""
    articles = re.findall(r'<article id="message-(\d+)"(.*?)</article>', await log_of(browser), re.DOTALL)
    return max(int(number) for number, text in articles if saying in text)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():
            await asyncio.sleep(0.02)


async def asked(shown: Shown, run_id: str, text: str, choice: str = "七天内可退。") -> str:
    """Have a run ask a person. Return the question's id."""
    runs = Runs(shown.db)
    await runs.begin_attempt(run_id, 1, serial=PHONE)
    choices = [Choice(value="record:1", label=choice), Choice(value="skip")]
    question = Question(
        id=f"q-{run_id[:6]}",
        kind=QuestionKind.NO_SURE_ANSWER,
        text=text,
        choices=choices,
        free_text=True,
        data={"contact": EVIL},
    )
    await StoredHuman(shown.db, hold_seconds=0).ask(Session(run_id=run_id, task="x"), question)
    await runs.park_attempt(run_id, 1)
    return question.id


async def test_commands_answer_with_the_cards_of_telegram(shown: Shown) -> None:
    await write(shown.browser, "/status")
    log = await log_of(shown.browser)
    assert "/status" in log
    assert texts("en").get("status.title") in log
    await write(shown.browser, "帮助")
    log = await log_of(shown.browser)
    for line in manual.help_lines(texts("en"), Role.OWNER, plans=shown.desk.plans.ready):
        assert line.text in log
    await write(shown.browser, "/kb search 发票")
    await write(shown.browser, "/nothing")
    assert "/nothing" in await log_of(shown.browser)
    page = await shown.browser.page("/chat")
    offered = re.findall(r'data-command="/(\w+) "', page)
    assert offered == [name for name, _ in manual.listed(Role.OWNER, "en", plans=shown.desk.plans.ready)]


async def test_what_lets_somebody_in_is_shown_for_a_while_and_stored_nowhere(shown: Shown) -> None:
    owner, browser = await someone(shown, Role.OWNER, "boss")
    await write(browser, "/console")
    await write(browser, "/invite operator name Anna")
    await write(browser, "/invite operator")
    log = await log_of(browser)
    secrets = [*re.findall(r"/login#([\w-]+)", log), *re.findall(r"/start (\w+)", log)]
    assert len(set(secrets)) == 3, "one to log in again, two invitations"
    kept = str(await ChatMessages(shown.db).last(owner.user_id, 50))
    assert [secret for secret in secrets if secret in kept] == []
    shown.busy.shop.clock.move(minutes=9)
    log = await log_of(browser)
    assert all(secret in log for secret in secrets)
    shown.busy.shop.clock.move(minutes=2)
    log = await log_of(browser)
    assert [secret for secret in secrets if secret in log] == []
    assert log.count("It was shown for ten minutes") == 3
    assert "Anna" in log, "the rest of the cards stays"


async def test_what_a_role_may_not_do_is_refused_in_the_same_words(shown: Shown) -> None:
    _, viewer = await someone(shown, Role.VIEWER, "looks")
    await write(viewer, "/run 打开设置")
    assert await Runs(shown.db).find(limit=10) == [
        run for run in await Runs(shown.db).find(limit=10) if run.chat is None
    ]
    assert "This is for the role operator" in await log_of(viewer) or "operator" in await log_of(viewer)
    offered = re.findall(r'data-command="/(\w+) "', await viewer.page("/chat"))
    assert "run" not in offered
    assert "status" in offered
    refused = await Audit(shown.db).refused()
    assert (refused[0].channel, refused[0].detail["why"]) == ("console", "role")


async def test_a_run_has_a_live_card_and_asks_here(shown: Shown) -> None:
    member, browser = await someone(shown, Role.OPERATOR, "op")
    await write(browser, "/run QQ回复联系人11", key="one")
    await write(browser, "/run QQ回复联系人11", key="one")
    runs = [run for run in await Runs(shown.db).find(limit=10) if run.chat]
    assert [run.chat["chat_id"] for run in runs if run.chat] == [member.id], "sent twice it is one run"
    run_id = runs[0].id
    card = await newest(browser, "QQ回复联系人11")
    assert f'value="stop:{run_id}"' in await log_of(browser)
    question = await asked(shown, run_id, EVIL)
    await until(lambda: _says(browser, 'name="action" value="q:'))
    text = await browser.page("/chat")
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert EVIL in unescape(text)
    number = await newest(browser, f'value="q:{question}:0"')
    said = await tap(browser, number, f"q:{question}:0")
    assert said["said"]
    row = await Questions(shown.db).get(question)
    assert row is not None
    assert (row.answer or {}).get("choice") == "record:1" or row.state != "open"
    await until(lambda: _says_not(browser, f'value="q:{question}:0"'))
    assert await newest(browser, "QQ回复联系人11") >= card, "the run's card is where it was"


async def test_a_run_that_no_chat_here_shows_is_read_once_and_not_for_each_event(shown: Shown) -> None:
    run_id = await Runs(shown.db).create(NewRun("打开设置"))
    assert run_id is not None
    log, reads, writes, asked = Events(shown.db), shown.db.reads, shown.db.writes, 0
    for number in range(30):
        await log.append(run_id, "step", {"n": number})
    outcome = await log.append(run_id, "outcome", {"status": "succeeded"})

    async def followed() -> bool:
        nonlocal asked
        asked += 1
        return await log.position(CONSOLE) >= outcome

    await until(followed)
    # At most one look at the log for each event, and two views of the run, which take about seven reads each.
    assert shown.db.reads - reads - asked < 31 + 40
    assert shown.db.writes - writes < 31 + 10  # what is shown nowhere is not confirmed one by one


async def _says(browser: Browser, words: str) -> bool:
    return words in await log_of(browser)


async def _says_not(browser: Browser, words: str) -> bool:
    return words not in await log_of(browser)


async def test_own_words_are_given_by_a_reply(shown: Shown) -> None:
    _, browser = await someone(shown, Role.OPERATOR, "op")
    await write(browser, "/run QQ回复联系人11")
    (run,) = [run for run in await Runs(shown.db).find(limit=10) if run.chat]
    question = await asked(shown, run.id, "怎么退货")
    await until(lambda: _says(browser, f'value="own:{question}"'))
    said = await tap(browser, await newest(browser, f'value="own:{question}"'), f"own:{question}")
    asks = said["asks"]
    assert f'id="reply-{asks}"' in await log_of(browser)
    await write(browser, "七天内都可以退。", asks)
    row = await Questions(shown.db).get(question)
    assert row is not None
    assert row.state != "open"
    assert "七天内都可以退。" in str(row)


async def test_plain_words_are_offered_as_a_task_and_a_forged_button_does_nothing(shown: Shown) -> None:
    _, browser = await someone(shown, Role.OPERATOR, "op")
    before = len(await Runs(shown.db).find(limit=50))
    await write(browser, "打开设置看看")
    offer = await newest(browser, 'value="go"')
    await tap(browser, offer, "people:gone:1")
    assert len(await Runs(shown.db).find(limit=50)) == before
    await tap(browser, offer, "go")
    await tap(browser, offer, "go")
    runs = [run for run in await Runs(shown.db).find(limit=50) if run.chat]
    assert [run.task for run in runs] == ["打开设置看看"], "two taps start one run"
    queued, running = (texts("en").get(f"card.{state}") for state in ("queued", "running"))
    assert queued in await log_of(browser)
    await Runs(shown.db).begin_attempt(runs[0].id, 1, serial=PHONE)
    log = await log_of(browser)
    assert running in log, "its card is drawn anew, though it took the offer's place"
    assert queued not in log
    mine = await newest(browser, "打开设置看看")
    status, _, _ = await browser.ask("POST", f"{CHAT}/tap", {"message": mine, "action": "stop:none"})
    assert status == 200


async def test_a_chat_is_its_persons_own(shown: Shown) -> None:
    member, browser = await someone(shown, Role.OPERATOR, "op")
    await write(browser, "/whoami")
    number = await newest(browser, "/whoami")
    _, other = await someone(shown, Role.OWNER, "chief")
    assert "/whoami" not in await log_of(other)
    assert (await other.ask("POST", f"{CHAT}/tap", {"message": number + 1, "action": "help"}))[0] == 404
    chat = ChatRef("console", member.id)
    console = _chat_of(shown)
    picture = b"\xff\xd8\xff" + b"x" * 20
    await console._outlet.put(Outgoing(Card("Here", picture=picture), chat))
    await console._outlet.put(Outgoing(Card("File", document=Document("a/<b>.html", b"<script>")), chat))
    paths = re.findall(rf'(?:src|href)="({CHAT}/\d+/\d\?v=\d+)"', await log_of(browser))
    assert len(paths) == 2
    async with browser.client.get(shown.url + paths[0]) as shown_picture:
        assert (await shown_picture.read(), shown_picture.content_type) == (picture, "image/jpeg")
    async with browser.client.get(shown.url + paths[1]) as file:
        assert (file.content_type, file.headers["X-Content-Type-Options"]) == ("application/octet-stream", "nosniff")
        assert file.headers["Content-Disposition"].startswith("attachment")
    for path in paths:
        assert (await other.get(path))[0] == 404
        assert (await (await shown.stranger()).get(path))[0] == 401


def _chat_of(shown: Shown) -> ConsoleChat:
    return shown.app[KEY]


async def test_a_restart_of_the_desk_keeps_what_was_said(shown: Shown) -> None:
    await write(shown.browser, "/status")

    async def ready() -> dict[str, bool]:
        return {}

    app = make_app(ready)
    add_console(app, shown.desk, shown.names)
    async with serving(app, "127.0.0.1", 0) as url:
        again = await shown.stranger()
        again.url = url
        assert await again.log_in("#" + await ConsoleSessions(shown.db).add_link("terminal", "en")) == 200
        assert texts("en").get("status.title") in await log_of(again)


async def test_an_open_page_is_told_of_what_is_new(shown: Shown) -> None:
    member, browser = await someone(shown, Role.OPERATOR, "op")
    async with browser.client.get(f"{shown.url}{CHAT}/events") as stream:
        assert stream.content_type == "text/event-stream"
        await stream.content.readuntil(b"\n\n")
        await write(browser, "/help")
        async with asyncio.timeout(10):
            while b"event: chat" not in await stream.content.readuntil(b"\n\n"):
                pass
        await shown.desk.team.remove(
            Actor("terminal", "terminal", "terminal", "terminal", "en", Role.OWNER), f"#{member.id}"
        )
        async with asyncio.timeout(10):
            await stream.content.read()  # it ends with the session


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Requested-By": ""},
        {"Origin": "https://shop.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_what_another_page_sends_is_refused(shown: Shown, headers: dict[str, str]) -> None:
    await write(shown.browser, "/status")
    number = await newest(shown.browser, texts("en").get("status.title"))
    before = await log_of(shown.browser)
    for path, body in ((CHAT, {"text": "/run x"}), (f"{CHAT}/tap", {"message": number, "action": "go"})):
        status, problem, _ = await shown.browser.ask("POST", path, body, **headers)
        assert (status, problem["type"] in {"forged", "foreign_origin"}) == (403, True)
    assert await log_of(shown.browser) == before
    stranger = await shown.stranger()
    assert (await stranger.ask("POST", CHAT, {"text": "/run x"}))[0] == 401


@pytest.mark.parametrize(
    "body",
    [{"text": ""}, {"text": "x" * (MOST_TEXT + 1)}, {"text": 1}, {"text": "x", "reply_to": -1}, {"other": "x"}, []],
)
async def test_what_is_no_message_is_refused(shown: Shown, body: Any) -> None:
    assert (await shown.browser.ask("POST", CHAT, body))[0] == 400
    assert await ChatMessages(shown.db).last("terminal", 10) == []


async def test_an_outcome_closes_the_card_in_its_place(shown: Shown) -> None:
    _, browser = await someone(shown, Role.OPERATOR, "op")
    await write(browser, "/run 打开设置")
    (run,) = [run for run in await Runs(shown.db).find(limit=10) if run.chat]
    number = await newest(browser, "打开设置")
    await write(browser, f"/stop {run.id}")
    await until(lambda: _says(browser, texts("en").get("card.stopped")))
    articles = re.findall(r'<article id="message-(\d+)"(.*?)</article>', await log_of(browser), re.DOTALL)
    (card,) = [text for found, text in articles if int(found) == number]
    assert texts("en").get("card.stopped") in card
    assert f'value="stop:{run.id}"' not in card


async def test_the_language_that_is_chosen_in_the_chat_is_the_pages(shown: Shown) -> None:
    _, browser = await someone(shown, Role.OPERATOR, "op")
    assert '<html lang="en">' in await browser.page("/chat")
    await write(browser, "/settings zh")
    assert '<html lang="zh-CN">' in await browser.page("/chat")


async def test_the_terminals_owner_is_told_what_only_a_person_can_do(shown: Shown) -> None:
    await write(shown.browser, "/digest on")
    await write(shown.browser, "/settings zh")
    log = await log_of(shown.browser)
    assert "Something went wrong" not in log
    assert texts("en").get("common.internal") not in log
