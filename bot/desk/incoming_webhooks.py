"""Incoming webhooks: other systems start runs, or answer questions, by messages that they sign.

The rights of a webhook are fixed when it is made. Its messages are those of an operator who may do nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from agent_core.texts import language_of
from bot.desk.actors import Actor, BadRequest, NotFound, Role, no_phone
from bot.desk.context import DeskContext, DeskService
from bot.desk.request_limits import Notebook
from bot.desk.webhook_messages import ID, SIGNATURE, TIMESTAMP, is_signed, new_secret
from bot.desk.webhooks_views import IncomingView, May
from storage.api_keys import NameTaken
from storage.engine import Database
from storage.incoming_webhooks import IncomingRow, IncomingWebhooks

CHANNEL = "webhook"  # of those who send messages
TOLERANCE = timedelta(minutes=5)  # of a message's timestamp
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_MESSAGE_ID = re.compile(r"[!-~]{1,200}")  # printable ASCII
_NOBODYS = new_secret()  # a message to a name that does not exist takes as long to refuse as any other


@dataclass(frozen=True, slots=True)
class Sender:
    """The signer of a message. key: names the message, so that a repeated request counts once."""

    actor: Actor
    may: May
    key: str


class DeskIncomingWebhooks(DeskService):
    """The service for incoming webhooks: owners add, list, rotate and remove them."""

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        self._incoming = IncomingWebhooks(context.db)
        self._notebook = Notebook()

    async def add(self, actor: Actor, name: str, may: May, *, phones: Sequence[str] = ()) -> tuple[str, IncomingView]:
        """Add one. Return its secret, which cannot be shown again, and the webhook.

        phones: the serials or names of the phones that it may use; empty for all.
        Raises BadRequest if the name is taken or not valid, and NotFound if a phone is not known.
        """
        book = await self._book()
        serials = [book.serial(phone) for phone in phones if phone]
        await self._allow(actor, Role.OWNER, "webhooks incoming add", name=name, may=may, phones=serials)
        if not _NAME.fullmatch(name):
            said = "The name of an incoming webhook is a part of its address: at most 63 of a-z, 0-9 and -."
            raise BadRequest(said, advice="Name the system that sends, such as shop.", key="incoming_name")
        if unknown := next((serial for serial in serials if serial not in book.known), ""):
            raise no_phone(unknown)
        secret = new_secret()
        try:
            row = await self._incoming.add(name, may, secret, serials=serials, lang=actor.lang, created_by=actor.id)
        except NameTaken:
            said, advice = f"There is an incoming webhook named {name} already.", "Choose another name."
            raise BadRequest(said, advice=advice, key="incoming_there", name=name) from None
        return secret, self._view(row)

    async def all(self, actor: Actor) -> list[IncomingView]:
        """Return all, without their secrets."""
        await self._allow(actor, Role.OWNER, "webhooks incoming list")
        return [self._view(row) for row in await self._incoming.all()]

    async def rotate(self, actor: Actor, name: str) -> tuple[str, IncomingView]:
        """Give one a new secret, and return it. The old one holds for 24 hours. Raises NotFound."""
        await self._allow(actor, Role.OWNER, "webhooks incoming rotate", name=name)
        secret = new_secret()
        row = await self._incoming.rotate(name, secret)
        if row is None:
            raise _no_incoming(name)
        return secret, self._view(row)

    async def remove(self, actor: Actor, name: str) -> IncomingView:
        """Remove a webhook: its messages are refused from now on. Runs that it has started continue.

        Raises NotFound if there is no such webhook.
        """
        await self._allow(actor, Role.OWNER, "webhooks incoming remove", name=name)
        row = await self._incoming.remove(name)
        if row is None:
            raise _no_incoming(name)
        return self._view(row)

    async def sender(self, name: str, headers: Mapping[str, str], body: bytes) -> Sender | None:
        """Return who sent a message to this name; None unless it was signed by a secret of a webhook of this name.

        headers: with the three of the scheme.
        Raises BadRequest if it is signed, but older or newer than TOLERANCE.
        """
        row = await self._incoming.get(name)
        now = self._db.now()
        message_id, written = headers.get(ID, ""), headers.get(TIMESTAMP, "")
        formed = _MESSAGE_ID.fullmatch(message_id) is not None and re.fullmatch(r"[0-9]{1,12}", written) is not None
        timestamp = int(written) if formed else 0
        secrets = row.secrets(now) if row is not None else (_NOBODYS,)
        signed = is_signed(secrets, message_id, timestamp, body, headers.get(SIGNATURE, "")[:2000])
        if row is None or not formed or not signed:
            if self._notebook.takes(CHANNEL, now):
                await self._audit.write(CHANNEL, CHANNEL, "webhook", {"why": "signature"}, allowed=False)
            return None
        if abs(now.timestamp() - timestamp) > TOLERANCE.total_seconds():
            raise BadRequest(
                "The message's webhook-timestamp is more than 5 minutes from now.",
                advice="Sign it anew when you send it again, and check both clocks.",
                key="webhook_timestamp",
            )
        actor = actor_of_incoming(row)
        return Sender(actor, cast("May", row.may), f"{actor.id}:{message_id}")

    def _view(self, row: IncomingRow) -> IncomingView:
        until = row.old_until if len(row.secrets(self._db.now())) > 1 else None
        return IncomingView(
            name=row.name,
            may=cast("May", row.may),
            phones=tuple(row.serials or ()),
            created_at=row.created_at.astimezone(self._zone),
            old_secret_until=until.astimezone(self._zone) if until is not None else None,
        )


def actor_of_incoming(row: IncomingRow) -> Actor:
    """Return the actor of an incoming webhook."""
    return Actor(
        id=f"webhook:{row.id}",
        channel=CHANNEL,
        user_id=str(row.id),
        name=row.name,
        lang=language_of(row.lang),
        role=Role.OPERATOR,
        phones=tuple(row.serials or ()),
    )


async def incoming_names(db: Database) -> dict[str, str]:
    """Return the names of all incoming webhooks, by the actor's id that runs store."""
    return {actor_of_incoming(row).id: row.name for row in await IncomingWebhooks(db).all()}


def _no_incoming(name: str) -> NotFound:
    said = f"There is no incoming webhook named {name}."
    return NotFound(said, advice="See `phonedesk webhooks incoming list`.", key="no_incoming", name=name)
