"""Messages: updates that came in, messages that go out to chats, and the cards among them.

An update is stored in the inbox before it is acknowledged, and handled once. Messages to a chat are in the outbox, in
order, until the chat's server has taken them. A card is the message in which a run or a question is shown, to be edited
or replied to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from storage.repository import Repository
from storage.tables import cards, inbox, outbox

NEW, DONE, FAILED = "new", "done", "failed"  # states of an update
PENDING, SENT, REPLACED = "pending", "sent", "replaced"  # states of a message, and FAILED
RUN, QUESTION = "run", "question"  # subjects of cards
OF_ITS_CHAT = {"reply_to", "edit", "edit_picture", "thread_id"}  # payload keys that mean something only in their chat
# A message written so far in the future means that the clock was put back since; its time is ignored.
CLOCK_BACK = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class InboxRow:
    """An update. ``raw``: its JSON as it came."""

    update_id: int
    raw: str
    state: str
    attempts: int
    error: str
    received_at: datetime


class InboxTable(Repository):
    """The table of updates."""

    async def store(self, update_id: int, raw: str) -> bool:
        """Store an update and wake ``db.signal("inbox")``. Return False if it was here before.

        It is on the disk when this returns.
        """
        new = self._db.insert(inbox).values(update_id=update_id, raw=raw, state=NEW, received_at=self._db.now())
        async with self._db.write(durable=True) as connection:
            done = await connection.execute(
                new.on_conflict_do_nothing(index_elements=["update_id"]).returning(inbox.c.update_id)
            )
            stored = done.scalar_one_or_none() is not None
        if stored:
            self._notify("inbox")
        return stored

    async def waiting(self, limit: int = 100, *, without: Collection[int] = ()) -> list[InboxRow]:
        """Return updates that are not handled yet, in order. ``without``: ids to leave out, some thousands at most."""
        statement = (
            sa.select(inbox)
            .where(inbox.c.state == NEW, inbox.c.update_id.not_in(without))
            .order_by(inbox.c.update_id)
            .limit(limit)
        )
        return await self._rows(InboxRow, statement)

    async def get(self, update_id: int) -> InboxRow | None:
        return await self._only(InboxRow, sa.select(inbox).where(inbox.c.update_id == update_id))

    async def begun(self, update_id: int) -> None:
        """Count a try before it is made, so that a try that crashes the process is counted too."""
        await self._set(update_id, attempts=inbox.c.attempts + 1)

    async def put_back(self, update_id: int) -> None:
        """Uncount the last try. Does nothing if the update is no longer waiting."""
        await self._set(
            update_id, only=sa.and_(inbox.c.state == NEW, inbox.c.attempts > 0), attempts=inbox.c.attempts - 1
        )

    async def done(self, update_id: int) -> None:
        await self._set(update_id, state=DONE, error="")

    async def failed(self, update_id: int, error: str, *, give_up: bool) -> None:
        """Store the error of a try. If ``give_up``, the update is not handed out again."""
        await self._set(update_id, state=FAILED if give_up else NEW, error=error)

    async def _set(self, update_id: int, *, only: sa.ColumnElement[bool] | None = None, **values: object) -> None:
        change = sa.update(inbox).where(inbox.c.update_id == update_id).values(**values)
        await self._execute(change if only is None else change.where(only))


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A message. ``ref``: its subject (``run:<id>:card``), to find it again. ``result``: the server's answer."""

    id: int
    chat_key: str
    ref: str
    payload: Mapping[str, Any]
    state: str
    attempts: int
    next_at: datetime
    result: Mapping[str, Any] | None
    error: str
    created_at: datetime
    updated_at: datetime


class OutboxTable(Repository):
    """The table of messages to chats."""

    async def put(self, chat_key: str, payload: Mapping[str, Any], *, ref: str = "", replace: bool = False) -> int:
        """Queue a message. Return its id.

        replace: replaces the waiting messages in this chat under the same ``ref``, so that of several unsent edits only
        the
            last is sent. If the replaced one was tried, its waiting time stays.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            next_at = now
            if replace and ref:
                old = await connection.execute(
                    sa.update(outbox)
                    .where(outbox.c.chat_key == chat_key, outbox.c.ref == ref, outbox.c.state == PENDING)
                    .values(state=REPLACED, updated_at=now)
                    .returning(outbox.c.next_at)
                )
                next_at = max([now, *old.scalars()])
            new = sa.insert(outbox).values(
                chat_key=chat_key,
                ref=ref,
                payload=dict(payload),
                state=PENDING,
                next_at=next_at,
                created_at=now,
                updated_at=now,
            )
            message_id: int = (await connection.execute(new.returning(outbox.c.id))).scalar_one()
        self._notify("outbox")
        return message_id

    async def due(self, limit: int = 50, *, without: Collection[int] = ()) -> list[OutboxRow]:
        """Return the first waiting message of each chat, if its time has come. Later ones of the chat wait for it.

        without: a few ids of messages to skip, so that later ones go before them.
        """
        first, now = _firsts(without), self._db.now()
        statement = (
            sa.select(outbox)
            .where(outbox.c.id.in_(first), sa.or_(outbox.c.next_at <= now, outbox.c.updated_at > now + CLOCK_BACK))
            .order_by(outbox.c.next_at, outbox.c.id)
            .limit(limit)
        )
        return await self._rows(OutboxRow, statement)

    async def next_time(self, *, after: datetime | None = None, without: Collection[int] = ()) -> datetime | None:
        """Return when the next message is due, only later than ``after`` if given; None if nothing waits."""
        first = _firsts(without)
        later = sa.true() if after is None else outbox.c.next_at > after
        return await self._value(
            sa.select(outbox.c.next_at).where(outbox.c.id.in_(first), later).order_by(outbox.c.next_at).limit(1)
        )

    async def sent(self, message_id: int, result: Mapping[str, Any] | None = None) -> None:
        await self._set(message_id, state=SENT, result=None if result is None else dict(result))

    async def retry(self, message_id: int, *, at: datetime, error: str = "", counts: bool = True) -> None:
        """Try again at ``at``; the chat's later messages wait.

        ``counts``: whether this counts as a try of the message.
        """
        await self._set(message_id, counts=counts, state=PENDING, next_at=at, error=error)

    async def failed(self, message_id: int, error: str) -> None:
        """Give up on a message, so that the chat's next one can go."""
        await self._set(message_id, state=FAILED, error=error)

    async def delay_chat(self, chat_key: str, until: datetime) -> None:
        """Send nothing to this chat before ``until``."""
        await self._execute(
            sa.update(outbox)
            .where(outbox.c.chat_key == chat_key, outbox.c.state == PENDING, outbox.c.next_at < until)
            .values(next_at=until)
        )

    async def move_chat(self, old_key: str, new_key: str) -> None:
        """Move waiting messages to the new chat of a group that became a supergroup, without the old chat's message
        ids.
        """
        waiting = sa.select(outbox.c.id, outbox.c.payload).where(
            outbox.c.chat_key == old_key, outbox.c.state == PENDING
        )
        async with self._db.write() as connection:
            for row in (await connection.execute(waiting)).mappings().all():
                payload = {key: value for key, value in row["payload"].items() if key not in OF_ITS_CHAT}
                await connection.execute(
                    sa.update(outbox).where(outbox.c.id == row["id"]).values(chat_key=new_key, payload=payload)
                )

    async def get(self, message_id: int) -> OutboxRow | None:
        return await self._only(OutboxRow, sa.select(outbox).where(outbox.c.id == message_id))

    async def is_said(self, ref: str) -> bool:
        """Tell whether a message about ``ref`` was sent or waits to be."""
        said = sa.select(sa.exists().where(outbox.c.ref == ref, outbox.c.state.in_([PENDING, SENT])))
        async with self._db.read() as connection:
            return bool((await connection.execute(said)).scalar_one())

    async def _set(self, message_id: int, *, counts: bool = True, **values: Any) -> None:
        await self._execute(
            sa.update(outbox)
            .where(outbox.c.id == message_id, outbox.c.state == PENDING)
            .values(updated_at=self._db.now(), attempts=outbox.c.attempts + int(counts), **values),
            durable=True,
        )


def _firsts(without: Collection[int]) -> sa.Select[tuple[int]]:
    """Select the id of the first waiting message of each chat."""
    waiting = (outbox.c.state == PENDING, outbox.c.id.not_in(without))
    return sa.select(sa.func.min(outbox.c.id)).where(*waiting).group_by(outbox.c.chat_key)


@dataclass(frozen=True, slots=True)
class CardRow:
    """A card. ``chat``: channel, chat_id, thread_id and kind. ``picture``: whether the message has a picture."""

    subject: str
    subject_id: str
    chat: Mapping[str, Any]
    chat_id: str
    message_id: str
    picture: bool


class Cards(Repository):
    """The table of cards."""

    async def put(
        self, subject: str, subject_id: str, *, chat: Mapping[str, Any], message_id: str, picture: bool
    ) -> None:
        """Store the message that shows the subject, in place of an earlier one."""
        values = {
            "chat": dict(chat),
            "chat_id": str(chat["chat_id"]),
            "message_id": message_id,
            "picture": picture,
        }
        await self._execute(self._db.upsert(cards, values, subject=subject, subject_id=subject_id))

    async def get(self, subject: str, subject_id: str) -> CardRow | None:
        return await self._one(sa.and_(cards.c.subject == subject, cards.c.subject_id == subject_id))

    async def at(self, subject: str, *, channel: str, chat_id: str, message_id: str) -> CardRow | None:
        """Return the card of this kind that the message shows, or None if it shows none."""
        return await self._one(
            sa.and_(
                cards.c.subject == subject,
                cards.c.chat_id == chat_id,
                cards.c.message_id == message_id,
                cards.c.chat["channel"].as_string() == channel,
            )
        )

    async def _one(self, condition: sa.ColumnElement[bool]) -> CardRow | None:
        return await self._only(CardRow, sa.select(cards).where(condition).limit(1))
