"""The pictures of the docs: scenes that the product plays against the stand-in Telegram, drawn as a person sees them.

    python -m tests.acceptance.pictures            which of the committed pictures are not what is shown now
    python -m tests.acceptance.pictures --write    make them anew (look at them before committing)

One picture is ``docs/images/desk/NAME.LANG.png``; the words that can be read in it stand in it as its description.
What is another each time (clock, durations, codes, ports) is put in order before it is drawn.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from PIL import Image, ImageChops

from agent_core.texts import Listed
from bot.channels.chat.cards import Card
from bot.channels.chat.digest import alert_card, digest_card
from bot.channels.chat.texts import LANGUAGES, Lang, Texts, catalogue, texts
from bot.channels.telegram import render
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.desk.digest_views import AlertView, Bar, DigestView, Often
from scheduler.times import parse_schedule
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.telegram import Chat, FakeUser, Message
from simulator.telegram.people import Toast
from simulator.telegram.picture import Look, chat_picture, to_png, transcript
from simulator.telegram.rules import checked_caption
from simulator.telegram.wording import Words, same
from simulator.telegram.world import Button, Content, World
from tests.acceptance.stage import ANSWER, OPEN_QUESTION, PATIENCE, QUESTION, TASK, ZONE, Server, Stage, stage
from tests.support.model_server import Hang

FOLDER = Path(__file__).parent.parent.parent / "docs" / "images" / "desk"
MORNING = datetime(2026, 11, 20, 10, 24, tzinfo=ZoneInfo(ZONE))  # when all of it happens, in the pictures
CODE, OTHER_CODE, PHONE = "K7QW3M9P", "HT4XN8RC", "VPHONE0001"
CRON = "*/5 9-17 * * 1-5"
ASKING_TASK = "QQ回复联系人12"
OWN_WORDS = "可以带上高铁的，20000毫安以内都没有问题。"
VISIBLE, MOST_DIFFERENT = (
    48,
    30,
)  # of 255, and pixels: another build of the decoder may round otherwise; a ring has more
MOST_BYTES = 150_000


# Commands that the page of the docs names and no picture shows, and the text that answers each, by its key.
TRIED = {
    "/ask": "ask.none",
    "/answers bad": "answers.empty_filtered",
    "/answers unanswered": "answers.unanswered_title",
    "/schedule list": "schedule.title",
    "/schedule pause 1": "schedule.paused",
    "/schedule resume 1": "schedule.resumed",
    "/screen": "screen.title",
    "/stop": "run.nothing_to_stop",
    "/digest on": "digest.setting",
    "/digest week": "digest.title_week",
    "/help run": "help.least",
    "/kb add 手机壳能刻字吗 | 可以，下单时备注要刻的字 | 能不能刻字": "kb.added",
}


@dataclass(frozen=True)
class People:
    owner: str
    colleague: str
    group: str
    subtitle: str  # under the name of a bot
    members: str  # under the name of a group


PEOPLE: dict[Lang, People] = {
    "zh": People("店主", "同事", "客服群", "机器人", "3 位成员"),
    "en": People("Owner", "Colleague", "Support", "bot", "3 members"),
}


def world() -> Scenario:
    """The shipped world, and a contact 12 who asks what the base has only something like."""
    scenario = default_scenario()
    asked = MessagePart(text=OPEN_QUESTION, ago=120, unread=True)
    scenario.contacts.insert(1, ContactPart(name="12", number="20110012", history=[asked]))
    return scenario


class Plain:
    """Puts in order what is another each time. ``began`` is when the scenes began, by the machine's clock."""

    def __init__(self, words: Texts, began: datetime, address: str) -> None:
        self.secrets: dict[str, str] = {address: PHONE}  # what stands in the pictures for what was there
        self._began = began.replace(second=0, microsecond=0)
        seconds = words.get("common.seconds", seconds=6)
        ahead = parse_schedule(CRON, ZONE).next(MORNING, 3)
        moments = Listed(f"{moment.astimezone(MORNING.tzinfo):%m-%d %H:%M}" for moment in ahead).joined(words.lang)
        self._patterns: list[tuple[re.Pattern[str], str]] = [
            (re.compile(rf"(?<!\d){seconds.replace('6', chr(92) + 'd+')}(?!\w)"), seconds),
            (re.compile(r"#[0-9a-f]{12}\b"), "#7fd14cb8d0d7"),  # an entry's id
            (re.compile(r"(?<= · 1:)\d{4,5}\b"), "5555"),  # the end of a phone's serial
            (re.compile(r"\b\d{4}-\d\d-\d\d\b(?! \d\d:)"), f"{MORNING:%Y-%m-%d}"),
            (re.compile(rf"(?<={words.get('schedule.next')})(：|: )[-\d :,、]+"), rf"\g<1>{moments}"),
        ]

    def __call__(self, said: str) -> str:
        said = re.sub(r"\b(?:(\d{4})-)?(\d\d)-(\d\d) (\d\d):(\d\d)\b", self._time, said)
        for pattern, instead in self._patterns:
            said = pattern.sub(instead, said)
        for secret, instead in self.secrets.items():
            said = said.replace(secret, instead)
        return said

    def _time(self, found: re.Match[str]) -> str:
        year, month, day, hour, minute = (int(part) if part else 0 for part in found.groups())
        shown = datetime(year or self._began.year, month, day, hour, minute, tzinfo=ZoneInfo(ZONE))
        tens = round((shown - self._began) / timedelta(minutes=10))  # the scenes themselves take less
        moved = MORNING + timedelta(minutes=10 * tens)
        return f"{moved:%Y-%m-%d %H:%M}" if year else f"{moved:%m-%d %H:%M}"


@dataclass
class Album:
    """The pictures taken so far: PNG by name."""

    lang: Lang
    plain: Words
    viewer: int
    taken: dict[str, bytes] = field(default_factory=dict)

    def take(
        self, name: str, messages: Sequence[Message], *, toast: Toast | None = None, viewer: FakeUser | None = None
    ) -> None:
        people = PEOPLE[self.lang]
        private = messages[0].chat.type == "private"
        look = Look(
            "Desk" if private else people.group,
            people.subtitle if private else people.members,
            viewer=viewer.id if viewer else self.viewer,
            time=f"{MORNING:%H:%M}",
            words=self.plain,
        )
        read = transcript(messages, self.plain) + (f"\n\n({toast.text})" if toast else "")
        self.taken[name] = to_png(chat_picture(messages, look, toast=toast), read)


class Scenes:
    """One language's scenes, played in order on one stage."""

    def __init__(self, on: Stage, lang: Lang) -> None:
        self.on, self.lang = on, lang
        self.words = texts(lang)
        self.people = PEOPLE[lang]
        self.owner = on.telegram.user(11001, self.people.owner, lang)
        self.colleague = on.telegram.user(11002, self.people.colleague, lang)
        self.group = on.telegram.group(-1001, self.people.group)
        self.plain = Plain(self.words, datetime.now(ZoneInfo(ZONE)), on.phone.address)
        self.album = Album(lang, self.plain, self.owner.id)

    async def play(self) -> dict[str, bytes]:
        server = await self.on.serve(PHONEDESK_LANG=self.lang)
        await self.pairing(server)
        await self.a_run()
        await self.a_question()
        await self.looking_back()
        await self.planning()
        await self.trying()
        assert await server.end() == 0
        return self.album.taken

    # -- what people do

    async def ask(
        self, text: str, key: str, *, by: FakeUser | None = None, chat: Chat | None = None
    ) -> tuple[Message, Message]:
        """Write ``text``; it, and the first later message of the bot that holds the words of this text key."""
        person = by or self.owner
        written = await person.send(text, chat=chat)
        return written, await self.shown(self._before_blank(key), by=person, chat=chat, after=written)

    def _before_blank(self, key: str) -> str:
        return re.split(r"\{", catalogue(self.lang)[key])[0].strip()

    async def shown(
        self, said: str, *, by: FakeUser | None = None, chat: Chat | None = None, after: Message | None = None
    ) -> Message:
        first = after.id if after is not None else 0
        found = await (by or self.owner).sees(
            lambda where: [m for m in where.saying(said) if m.id > first], timeout=PATIENCE, chat=chat
        )
        return found[0]

    async def becomes(self, message: Message, met: Callable[[Message], bool]) -> None:
        await self.owner.sees(lambda _: met(message), timeout=PATIENCE, chat=message.chat)

    async def rests(self, message: Message) -> None:
        """Wait until nothing of the message has changed for two seconds."""
        seen = None
        while (now := (message.words, message.photo)) != seen:
            seen = now
            await asyncio.sleep(2)

    # -- the scenes

    async def pairing(self, server: Server) -> None:
        code = await server.pairing_code()
        self.plain.secrets[code] = CODE
        self.album.take("pair", await self.ask(f"/start {code}", "access.paired"))
        invited = await self.ask("/invite operator 24h", "invite.title")
        found = re.search(r"start=([A-Z0-9]+)", invited[1].words)
        assert found, invited[1].words
        self.plain.secrets[found[1]] = OTHER_CODE
        self.album.take("invite", invited)
        await self.ask(f"/start {found[1]}", "access.paired", by=self.colleague)
        helped = await self.ask("/help", "help.title", by=self.colleague)
        self.album.take("help", helped, viewer=self.colleague)
        self.album.take("people", await self.ask("/people", "people.title"))

    async def a_run(self) -> None:
        self.on.brain.instead["GET_KNOWLEDGE_DATA"] = Hang()
        written, card = await self.ask(f"/run {TASK}", "card.task")
        step = self.words.get("card.step_of", step=2, max=100)
        await self.becomes(card, lambda m: step in m.words and m.photo is not None)
        await self.rests(card)  # on a busy machine the picture of the step comes after its words
        self.album.take("live", [written, card])
        await self.owner.tap(card, self.words.get("button.hold"))
        await self.becomes(card, lambda m: self.words.get("card.held") in m.words)
        self.album.take("held", [written, card])
        self.on.brain.instead.clear()
        await self.owner.tap(card, self.words.get("button.resume"))
        await self.becomes(card, lambda m: self.words.get("card.succeeded") in m.words)
        assert self.on.sent == {"11": [ANSWER]}
        rated = await self.owner.tap(card, "👍")
        await self.becomes(card, lambda m: m.buttons[0][0] != "👍")
        self.album.take("finished", [written, card], toast=rated)

    async def a_question(self) -> None:
        written, card = await self.ask(f"/run {ASKING_TASK}", "card.task", chat=self.group)
        question = await self.shown(self.words.get("question.no_sure_answer"), chat=self.group)
        self.album.take("question", [written, question])
        self.album.take("status", await self.ask("/status", "status.title"))
        answer = await self.colleague.send(OWN_WORDS, chat=self.group, reply_to=question)
        accepted = await self.shown(self.words.get("question.accepted"), chat=self.group)
        await self.becomes(card, lambda m: self.words.get("card.succeeded") in m.words)
        await self.becomes(question, lambda m: self.words.get("question.keep") in m.words)
        assert self.on.sent["12"] == [OWN_WORDS]
        self.album.take("answered", [question, answer, accepted])

    async def looking_back(self) -> None:
        self.album.take("learnt", await self.ask("/kb pending", "kb.pending"))
        self.album.take("answers", await self.ask("/answers", "answers.title"))
        self.album.take("history", await self.ask("/history", "history.title"))
        written = await self.owner.send("/replay 1")
        film = await self.owner.sees(
            lambda chat: [m for m in chat.from_bot if m.content.media == "animation"], timeout=PATIENCE
        )
        self.album.take("replay", [written, film[0]])

    async def planning(self) -> None:
        task = f'/schedule add "{CRON}" {TASK}'
        self.album.take("schedule", await self.ask(task, "schedule.expression"))

    async def trying(self) -> None:
        """What the page says besides."""
        waiting = self.owner.chat.saying(self._before_blank("kb.pending"))[-1]
        toast = await self.owner.tap(waiting, self.words.get("kb.approve"))
        assert toast.text.startswith(self._before_blank("kb.approved")), toast
        for command, key in TRIED.items():
            await self.ask(command, key)


def a_day() -> DigestView:
    """A day of work, which no test can wait for."""
    begin = datetime(2026, 11, 19, tzinfo=MORNING.tzinfo)
    by_hour = {
        9: (3, 1, 0),
        10: (5, 1, 0),
        11: (4, 0, 1),
        13: (2, 0, 0),
        14: (6, 1, 0),
        15: (3, 2, 0),
        16: (5, 0, 1),
        17: (2, 0, 0),
    }
    bars = tuple(Bar(begin + timedelta(hours=hour), *by_hour.get(hour, (0, 0, 0))) for hour in range(24))
    return DigestView(
        "daily",
        begin,
        begin + timedelta(days=1),
        alone=sum(bar.alone for bar in bars),
        by_person=sum(bar.by_person for bar in bars),
        skipped=2,
        put_to_person=7,
        median_seconds=19.0,
        calls=171,
        tokens_in=402_300,
        tokens_out=12_900,
        often=(Often(QUESTION, 9), Often("怎么退货？", 4), Often(OPEN_QUESTION, 2)),
        left=2,
        unanswered=(Often("手机壳能刻字吗？", 2),),
        bars=bars,
    )


async def sent_by_itself(lang: Lang) -> dict[str, bytes]:
    """What comes without being asked for, of figures and times that are given here."""
    words, desk = texts(lang), World()
    viewer = desk.member(11001, PEOPLE[lang].owner, lang)
    album = Album(lang, same, viewer.id)
    chat = desk.chats[viewer.id]
    album.take("digest", [_post(desk, chat, await digest_card(a_day(), words))])
    down = AlertView("phone", MORNING - timedelta(minutes=9), name=PHONE)
    cards = [alert_card(down, words), alert_card(replace(down, seconds=540.0), words)]
    album.take("alert", [_post(desk, chat, card) for card in cards])
    return album.taken


def _post(desk: World, chat: Chat, card: Card) -> Message:
    """The card as the bot sends it."""
    made = render.outgoing(card)
    caption, entities = checked_caption(made.caption, "HTML")
    content = Content(text=caption, buttons=_buttons(made))
    if made.picture is not None:
        file = desk.store(made.picture, "picture.jpg")
        content = Content(caption=caption, media="photo", file=file, buttons=_buttons(made))
    return desk.post(chat, desk.bot, content.with_entities(entities))


def _buttons(made: OutgoingMessage) -> tuple[tuple[Button, ...], ...]:
    return tuple(tuple(Button(key.label, key.data, style=key.style) for key in row) for row in made.keyboard)


async def play(folder: Path, lang: Lang) -> dict[str, bytes]:
    """Every picture of a language, as PNG by name; ``folder`` is for what the product keeps."""
    phone = VirtualPhone(world(), clock=lambda: MORNING)
    async with stage(folder, own_phone=phone) as on:
        return await Scenes(on, lang).play() | await sent_by_itself(lang)


def place(name: str, lang: Lang) -> Path:
    return FOLDER / f"{name}.{lang}.png"


def described(png: bytes) -> str:
    """The words that stand in a picture."""
    with Image.open(io.BytesIO(png)) as image:
        image.load()
        return str(getattr(image, "text", {}).get("Description", ""))


def difference(png: bytes, other: bytes) -> int:
    """How many pixels a person would call another colour; all of them where the sizes differ."""
    with Image.open(io.BytesIO(png)) as one, Image.open(io.BytesIO(other)) as two:
        if one.size != two.size:
            return one.width * one.height
        apart = ImageChops.difference(one.convert("RGB"), two.convert("RGB"))
    most = ImageChops.lighter(ImageChops.lighter(*apart.split()[:2]), apart.split()[2])
    return sum(most.histogram()[VISIBLE:])


def stale(taken: dict[str, bytes], lang: Lang) -> list[str]:
    """What is wrong with the committed pictures of a language, in words."""
    found = []
    for name, png in taken.items():
        file = place(name, lang)
        if not file.exists():
            found.append(f"{file.name} is missing")
            continue
        kept = file.read_bytes()
        if described(kept) != described(png):
            found.append(f"{file.name} says:\n{described(kept)}\nand now:\n{described(png)}")
        elif (apart := difference(kept, png)) > MOST_DIFFERENT:
            found.append(f"{file.name} looks otherwise now ({apart} pixels)")
    known = {place(name, lang) for name in taken}
    return found + [
        f"{file.name} is made by no scene" for file in sorted(FOLDER.glob(f"*.{lang}.png")) if file not in known
    ]


async def _main(write: bool, languages: Sequence[Lang]) -> int:
    faults: list[str] = []
    for lang in languages:
        with tempfile.TemporaryDirectory() as folder:
            taken = await play(Path(folder), lang)
        if write:
            FOLDER.mkdir(parents=True, exist_ok=True)
            for name, png in taken.items():
                place(name, lang).write_bytes(png)
                sys.stdout.write(f"{place(name, lang).name} {len(png) / 1000:.0f} kB\n")
        else:
            faults += stale(taken, lang)
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The pictures of the docs.")
    parser.add_argument("--write", action="store_true", help="make them anew")
    parser.add_argument("--lang", choices=LANGUAGES, action="append", help="only these languages")
    given = parser.parse_args()
    sys.exit(asyncio.run(_main(given.write, given.lang or LANGUAGES)))
