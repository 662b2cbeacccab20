"""Incoming webhooks: the rights of other systems by a signed message, and the secrets that they sign with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from storage.api_keys import NameTaken
from storage.repository import Repository
from storage.tables import incoming_webhooks
from storage.webhooks import OVERLAP, SigningSecrets

RUN, ANSWER = "run", "answer"


@dataclass(frozen=True, slots=True)
class IncomingRow(SigningSecrets):
    """An incoming webhook. ``may``: RUN or ANSWER. ``serials``: the phones that it may use, None for all."""

    id: int
    name: str
    may: str
    serials: Sequence[str] | None
    lang: str
    created_by: str
    created_at: datetime


_ALL = sa.select(incoming_webhooks).order_by(incoming_webhooks.c.id)  # built once, see ``storage.history``


class IncomingWebhooks(Repository):
    """The table of incoming webhooks."""

    async def add(
        self, name: str, may: str, secret: str, *, serials: Sequence[str] = (), lang: str = "zh", created_by: str = ""
    ) -> IncomingRow:
        """Add one. Raises NameTaken if the name exists."""
        new = sa.insert(incoming_webhooks).values(
            name=name,
            may=may,
            serials=list(serials) or None,
            lang=lang,
            secret=secret,
            created_by=created_by,
            created_at=self._db.now(),
        )
        try:
            async with self._db.write(durable=True) as connection:
                row = (await connection.execute(new.returning(*incoming_webhooks.c))).mappings().one()
        except IntegrityError:
            raise NameTaken(f"There is an incoming webhook {name!r} already.") from None
        return IncomingRow(**row)

    async def all(self) -> list[IncomingRow]:
        return await self._rows(IncomingRow, _ALL)

    async def get(self, name: str) -> IncomingRow | None:
        return await self._only(IncomingRow, sa.select(incoming_webhooks).where(incoming_webhooks.c.name == name))

    async def rotate(self, name: str, secret: str) -> IncomingRow | None:
        """Give a webhook a new secret; the previous one is valid for OVERLAP. Return None if there is no such name."""
        table = incoming_webhooks
        values = {"secret": secret, "old_secret": table.c.secret, "old_until": self._db.now() + OVERLAP}
        changed = sa.update(table).where(table.c.name == name).values(**values).returning(*table.c)
        return await self._changed(IncomingRow, changed, durable=True)

    async def remove(self, name: str) -> IncomingRow | None:
        """Remove a webhook: its messages are refused from now on. Return None if there is no such name."""
        gone = sa.delete(incoming_webhooks).where(incoming_webhooks.c.name == name).returning(*incoming_webhooks.c)
        return await self._changed(IncomingRow, gone, durable=True)
