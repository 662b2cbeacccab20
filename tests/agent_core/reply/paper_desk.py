"""One phone on paper and all that stands around it, over several runs: what they ask, send, and leave in the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agent_core.agent import PhoneAgent
from agent_core.perception.readings import Side, Source
from agent_core.ports import Event, Human, Lease, Ledger, LedgerRow, Record, ReplyState, RunStore
from agent_core.session import Answer, Question, QuestionKind, Session
from agent_core.settings import new_session
from tests.agent_core.paper import Chat, Clock, Flaws, Message, PaperPhone, PaperReader
from tests.agent_core.reply.dying import Reaper, mortal
from tests.agent_core.stories import SETTINGS, PaperModel, _time
from tests.support.ledger import DrawnLedger

SHIP, BILL, WARRANTY = "几天能发货？", "能开发票吗？", "保修多久？"
SHIPPED, BILLED, WARRANTED = "付款后48小时内发出。", "可以开电子发票，下单时备注抬头。", "保修一年，人为损坏除外。"
SKIP = Answer(choice="skip", by="店长")
SEND = Answer(choice="send", by="店长")


STATES = frozenset({"advance", "next_part"})


def ask(query: str) -> str:
    """What the model says to have ``query`` looked up."""
    return f'do(action="GET_KNOWLEDGE_DATA", query="{query}")'


class WatchedPhone(PaperPhone):
    """``on_type`` happens, one for each time, as soon as a text is typed, ``on_send`` as Send is tapped.

    ``type_errors`` are raised instead of typing, ``tap_errors`` instead of tapping. With ``clears`` False the input
    cannot be emptied.
    """

    def __init__(self, chats: Sequence[Chat], flaws: Flaws, clock: Clock) -> None:
        super().__init__(chats, (), flaws, clock)
        self.on_type: list[Callable[[], None]] = []
        self.on_send: list[Callable[[], None]] = []
        self.type_errors: list[Exception] = []
        self.tap_errors: list[Exception] = []
        self.clears = True

    @asynccontextmanager
    async def keyboard(self) -> AsyncIterator[WatchedPhone]:
        async with super().keyboard():
            yield self

    async def tap(self, point: object) -> None:
        if self.tap_errors:
            raise self.tap_errors.pop(0)
        await super().tap(point)  # type: ignore[arg-type]  # as it came

    def _send(self, chat: Chat) -> None:
        super()._send(chat)
        if self.on_send:
            self.on_send.pop(0)()

    async def type(self, text: str) -> None:
        if self.type_errors:
            raise self.type_errors.pop(0)
        await super().type(text)
        if self.on_type:
            self.on_type.pop(0)()

    async def clear(self) -> None:
        if self.clears:
            await super().clear()

    # -- what happens outside

    def recall(self, name: str = "11") -> None:
        messages = self.chats[name].messages
        messages.remove([message for message in messages if message.side is Side.THEM][-1])

    def colleague(self, text: str, name: str = "11") -> None:
        self.chats[name].messages.append(Message(Side.ME, text))

    def touch(self) -> None:
        self._touches.touched = True


class WritesOnly(Reaper):
    """Counts calls of these names, and neither keyboards nor wake locks."""

    counted: frozenset[str] = STATES

    async def call(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        if name in self.counted or self.dead:
            return await super().call(name, work)
        return await work()


class Shelf:
    """Sure answers, by words that the query holds. ``before`` happens once, while it is asked."""

    name = "paper"

    def __init__(self) -> None:
        self.answers = {"发货": SHIPPED, "发票": BILLED, "保修": WARRANTED}
        self.error: Exception | None = None
        self.before: Callable[[], None] | None = None
        self.queries: list[str] = []

    async def retrieve(self, query: str) -> Sequence[Record]:
        self.queries.append(query)
        before, self.before = self.before, None
        if before is not None:
            before()
        if self.error is not None:
            raise self.error
        found = [(words, text) for words, text in self.answers.items() if words in query]
        return [Record(words, text, query, 0.9, sure=True, source="paper") for words, text in found[:1]]

    async def close(self) -> None:
        return None


class People:
    """Answers in order; with nothing left nobody is there. What is a function happens, and gives the answer."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[], Answer]] = []
        self.asked: list[Question] = []
        self.pictures: list[bytes | None] = []

    @property
    def kinds(self) -> list[QuestionKind]:
        return [question.kind for question in self.asked]

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        self.asked.append(question)
        self.pictures.append(picture)
        answer = self.answers.pop(0) if self.answers else None
        return answer() if callable(answer) else answer


class Store:
    """Keeps the events, and the session as another process would read it."""

    def __init__(self) -> None:
        self.saved = ""
        self.events: list[Event] = []

    async def save(self, session: Session) -> None:
        self.saved = session.model_dump_json()

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        self.events.append(event)
        if session is not None:
            await self.save(session)

    @property
    def session(self) -> Session:
        return Session.model_validate_json(self.saved)

    @property
    def answers(self) -> list[tuple[str, str, str]]:
        """What the answer log was told: contact, question, state."""
        told = [event.data for event in self.events if event.kind == "answer"]
        return [(data["contact"], data["question"], data["state"]) for data in told]


class WatchedLedger(DrawnLedger):
    """``on_sending`` happens once, when a row is written down as sending."""

    def __init__(self) -> None:
        super().__init__()
        self.on_sending: Callable[[], None] | None = None

    async def advance(self, row_id: int, state: ReplyState, *, expected: Sequence[ReplyState]) -> LedgerRow:
        row = await super().advance(row_id, state, expected=expected)
        if state is ReplyState.SENDING and self.on_sending is not None:
            happening, self.on_sending = self.on_sending, None
            happening()
        return row


class PaperDesk:
    """Contact 11's chat is in front, and 11 has asked ``asked``. There are chats with 12 and 110, too."""

    def __init__(self, *asked: str, sends: Sequence[str] = (), source: Source = Source.TREE, enter: bool = False):
        self.clock = Clock()
        chats = [
            Chat("11", [Message(Side.THEM, "在吗"), Message(Side.ME, "在的，您请说")]),
            Chat("12", [Message(Side.THEM, "你好"), Message(Side.ME, "您好，请讲")]),
            Chat("110", [Message(Side.ME, "嗯")]),
        ]
        flaws = Flaws(sends=tuple(sends), source=source, enter_sends=enter)
        self.phone = WatchedPhone(chats, flaws, self.clock)
        for words in asked:
            self.phone.receive("11", words)
        self.phone.enter("11")
        self.shelf, self.people, self.store, self.ledger = Shelf(), People(), Store(), WatchedLedger()

    def run(
        self,
        *replies: str,
        contact: str = "11",
        session: Session | None = None,
        dies_at: int = 0,
        counted: frozenset[str] = STATES,
        lease: Lease | None = None,
    ) -> Session:
        """An attempt, of a new run where no session is given. The model says ``replies``, then what makes sense.

        ``dies_at``: the process is killed (Killed is raised) before this call, from 1, of those that are ``counted``.
        """
        reaper = WritesOnly(at=dies_at)
        reaper.counted = counted
        with _time(self.clock) as loop:
            try:
                attempt = self.attempt(*replies, contact=contact, session=session, reaper=reaper, lease=lease)
                return loop.run_until_complete(attempt)
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())

    async def attempt(
        self,
        *replies: str,
        contact: str = "11",
        session: Session | None = None,
        reaper: WritesOnly | None = None,
        ledger: Ledger | None = None,
        store: RunStore | None = None,
        human: Human | None = None,
        lease: Lease | None = None,
    ) -> Session:
        """As ``run``, in the time and with the parts that the caller has."""
        reaper = reaper or WritesOnly()
        agent = PhoneAgent(
            model=PaperModel(self.phone, replies),
            device=mortal(self.phone, reaper, reaper.counted),
            knowledge=self.shelf,
            human=human or self.people,
            ledger=mortal(ledger or self.ledger, reaper, reaper.counted),
            store=mortal(store or self.store, reaper, reaper.counted),
            lease=lease,
            reader=PaperReader(self.phone),
            settings=SETTINGS,
        )
        try:
            return await agent.go_on(session or new_session(f"QQ回复联系人{contact}", self.phone.serial, SETTINGS))
        finally:
            self.phone._ours = False

    @property
    def rows(self) -> list[tuple[str, ReplyState]]:
        return [(row.question, row.state) for row in self.ledger._rows.values()]

    def sent(self, name: str = "11") -> list[str]:
        """What stands in the chat and came from here."""
        return [message.text for message in self.phone.chats[name].messages if message.from_here]

    @property
    def drafts(self) -> dict[str, str]:
        return {chat.name: chat.draft for chat in self.phone.chats.values() if chat.draft}
