"""Digests (the figures of a period), the chats that get them by themselves, and the chats that get alerts."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, Literal, cast

from agent_core.model.base import Usage
from agent_core.model.usage import Prices
from agent_core.reply.sureness.plain import stripped
from agent_core.texts import Lang
from bot.desk.actors import Actor, BadRequest, ChatRef, Role, not_one_of
from bot.desk.context import DeskService, chat_data, chat_ref, own_chat, telegram_chat
from bot.desk.digest_views import (
    Addressee,
    AlertSubject,
    AlertView,
    Bar,
    DayFigures,
    DigestSetting,
    DigestView,
    FailedRuns,
    ModelShare,
    Often,
    Period,
    StatisticsView,
)
from bot.desk.people import actor_of
from scheduler.jobs.digests import DigestChat
from storage.answers import FAILED, FORGOTTEN, SENT, SKIPPED, UNKNOWN
from storage.digests import DigestChatRow, Digests
from storage.people import People, PersonRow
from storage.statistics import AskedRow, ModelUsage, Statistics, TimeRange, UsageFigures

MOST_OFTEN = 4
SPANS = (7, 30, 90)  # days that statistics are shown of
LEFT = (SKIPPED, FAILED, UNKNOWN)
_DAYS: Mapping[Period, tuple[int, int]] = {  # days back to the first and to the last day of the period
    "today": (0, 0),
    "yesterday": (1, 1),
    "week": (6, 0),
    "month": (29, 0),
}

NOTIFY = "notify"  # the channel of the services of PHONEDESK_NOTIFY__URLS
DIGESTS = ("daily", "weekly")


class DeskDigest(DeskService):
    """The service for digests and alerts.

    Viewers see the figures of their phones; operators choose the digests of chats.
    """

    # Figures ----------------------------------------------------------------------------------------------------------

    async def look(self, actor: Actor, period: Period) -> DigestView:
        """Return the figures of a period. Raises BadRequest if there is no such period."""
        await self._allow(actor, Role.VIEWER, "digest", period=period)
        if period not in _DAYS:
            raise not_one_of(f"This is no time: {period}.", period, _DAYS)
        first, last = _DAYS[period]
        today = self._db.now().astimezone(self._zone).date()
        since = datetime.combine(today - timedelta(days=first), time.min, tzinfo=self._zone)
        until = datetime.combine(today - timedelta(days=last - 1), time.min, tzinfo=self._zone)
        return await self._view(period, since, until, actor.phones)

    async def _view(self, period: Period, since: datetime, until: datetime, serials: Sequence[str]) -> DigestView:
        figures, span = Statistics(self._db), TimeRange(since.astimezone(UTC), until.astimezone(UTC), serials)
        rows = await figures.asked(span)
        usage, swept = await figures.usage(span), await figures.swept(span)
        now = self._db.now()
        answered = [row for row in rows if row.state == SENT]
        left = [row for row in rows if _is_left(row, now)]
        unit: Literal["hour", "day"] = "hour" if until - since <= timedelta(hours=25) else "day"
        return DigestView(
            period=period,
            since=since,
            until=until,
            alone=sum(not row.by_person for row in answered),
            by_person=sum(row.by_person for row in answered),
            skipped=sum(row.state == SKIPPED for row in rows),
            failed=sum(row.state == FAILED for row in rows),
            unknown=sum(row.state == UNKNOWN for row in rows),
            under_way=sum(row.state not in (SENT, *LEFT) for row in rows),
            put_to_person=await figures.put_to_people(span),
            median_seconds=_median(answered),
            calls=usage.calls,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            cost=_cost(usage, self.context.prices),
            currency=self.context.prices.currency,
            models=_shares(usage, self.context.prices),
            kept_since=self._kept_since(since, now),
            sweeps=swept.sweeps,
            swept_contacts=swept.contacts,
            idle_sweeps=swept.idle,
            not_found=swept.unknown,
            often=tuple(often for often in _often(rows) if often.count > 1)[:MOST_OFTEN],
            left=len(left),
            unanswered=_often(left)[:MOST_OFTEN],
            bars=tuple(_bar(begin, its, now) for begin, its in _parted(rows, self._begins(since, until, unit))),
            unit=unit,
        )

    def _begins(self, since: datetime, until: datetime, unit: Literal["hour", "day"]) -> list[datetime]:
        """Return the beginning of each hour or day."""
        begins = [since]
        while (following := self._after(begins[-1], unit)) < until:
            begins.append(following)
        return begins

    def _after(self, moment: datetime, unit: Literal["hour", "day"]) -> datetime:
        if unit == "hour":  # real hours, also in the night when the clocks change
            return (moment.astimezone(UTC) + timedelta(hours=1)).astimezone(self._zone)
        return datetime.combine(moment.date() + timedelta(days=1), moment.time(), tzinfo=self._zone)

    async def days(self, actor: Actor, count: int) -> StatisticsView:
        """Return the figures of each of the last days, with today.

        Raises BadRequest for any number of days but those of ``SPANS``.
        """
        await self._allow(actor, Role.VIEWER, "statistics", days=count)
        if count not in SPANS:
            raise not_one_of(f"This is no number of days: {count}.", str(count), map(str, SPANS))
        now = self._db.now()
        today = now.astimezone(self._zone).date()
        first, end = (
            datetime.combine(today + timedelta(days=days), time.min, tzinfo=self._zone) for days in (1 - count, 1)
        )
        begins = self._begins(first, end, "day")
        figures, span = Statistics(self._db), TimeRange(first.astimezone(UTC), end.astimezone(UTC), actor.phones)
        used = await figures.usage_from(span, [begin.astimezone(UTC) for begin in begins])
        prices = self.context.prices
        return StatisticsView(
            days=tuple(
                DayFigures(
                    bar=_bar(begin, rows, now),
                    median_seconds=_median([row for row in rows if row.state == SENT]),
                    calls=usage.calls,
                    tokens_in=usage.tokens_in,
                    tokens_out=usage.tokens_out,
                    cost=_cost(usage, prices),
                )
                for (begin, rows), usage in zip(_parted(await figures.asked(span), begins), used, strict=True)
            ),
            failures=tuple(FailedRuns(kind, number) for kind, number in await figures.failures(span)),
            currency=prices.currency,
            kept_since=self._kept_since(first, now),
        )

    def _kept_since(self, since: datetime, now: datetime) -> datetime | None:
        """Return since when the event log is kept, if that is later than ``since``."""
        kept = now - self.context.keep if self.context.keep is not None else None
        return kept.astimezone(self._zone) if kept is not None and kept > since else None

    # Chats with digests -----------------------------------------------------------------------------------------------

    async def setting(self, actor: Actor, chat: ChatRef) -> DigestSetting:
        """Return which digests a chat gets."""
        await self._allow(actor, Role.VIEWER, "digest", chat=chat)
        return await self._setting(actor, chat)

    async def switch(
        self, actor: Actor, chat: ChatRef, *, daily: bool | None = None, weekly: bool | None = None
    ) -> DigestSetting:
        """Turn a chat's digests on or off; None leaves one as it is.

        The chat is shown the phones and runs that ``actor`` may see, unless a digest stays on that another person has
        turned on.
        Raises BadRequest if the actor is not a paired person.
        """
        await self._allow(actor, Role.OPERATOR, "digest switch", chat=chat, daily=daily, weekly=weekly)
        if not actor.id.isdecimal():
            advice = "Ask in the chat that is to get the digest."
            raise BadRequest("Nobody who is paired asks.", advice=advice, key="unpaired")
        now = await self._setting(actor, chat)
        row, kinds = await self._on(chat)
        turned = {"daily": now.daily if daily is None else daily, "weekly": now.weekly if weekly is None else weekly}
        # While one digest stays on, the chat keeps the first person's rights, even if another person turns on the
        # other.
        stays = row is not None and any(turned[kind] for kind in kinds)
        person_id = row.person_id if row is not None and stays else int(actor.id)
        # A digest that stays on loses nothing that is already due; one that is turned on begins with the next.
        was = {"daily": now.daily, "weekly": now.weekly}
        on_since = row.changed_at if row is not None else await self._paired_at(actor)
        await Digests(self._db).set_chat(
            chat.key,
            chat_data(chat),
            **turned,
            person_id=person_id,
            since=on_since if any(was[kind] and turned[kind] for kind in was) else None,
            begins=[kind for kind in was if turned[kind] and not was[kind]],
        )
        return await self._setting(actor, chat)

    async def _paired_at(self, actor: Actor) -> datetime | None:
        person = await People(self._db).get(int(actor.id))
        return person.paired_at if person is not None else None

    async def _setting(self, actor: Actor, chat: ChatRef) -> DigestSetting:
        row, kinds = await self._on(chat)
        at = {"daily_at": self.context.digest_at[0], "weekly_at": self.context.digest_at[1]}
        if row is not None:
            return DigestSetting("daily" in kinds, "weekly" in kinds, **at)
        own = actor.role is Role.OWNER and chat.kind == "private"
        return DigestSetting(own, own, **at)

    async def _on(self, chat: ChatRef) -> tuple[DigestChatRow | None, frozenset[str]]:
        """Return the chat's row, and the digests it gets: none if its person is gone, or may no longer see them."""
        row = await Digests(self._db).chat(chat.key)
        person = await People(self._db).get(row.person_id) if row is not None else None
        return row, _chat(row, person).kinds if row is not None and person is not None else frozenset()

    async def chats(self) -> list[DigestChat]:
        """Return the chats that get digests: every chat that turned them on, and owners' own unless they turned them
        off.
        """
        people = {row.id: row for row in await People(self._db).all()}
        rows = {row.chat_key: row for row in await Digests(self._db).chats()}
        found = [_chat(row, people[row.person_id]) for row in rows.values() if row.person_id in people]
        for person in people.values():
            own = own_chat(person)
            if person.role == Role.OWNER.value and own.key not in rows:
                both = frozenset({"daily", "weekly"})
                found.append(DigestChat(own.key, chat_data(own), person.id, person.paired_at, both))
        return [chat for chat in found if chat.kinds]

    async def service_chats(self) -> list[DigestChat]:
        """Return the entry for the services of the settings, which get both digests, of all phones."""
        place = ChatRef(NOTIFY, "")
        return [DigestChat(place.key, chat_data(place), 0, datetime.min.replace(tzinfo=UTC), frozenset(DIGESTS))]

    async def is_empty(self, since: datetime, until: datetime, serials: Sequence[str]) -> bool:
        """Tell whether nothing happened on these phones in this time."""
        figures, span = Statistics(self._db), TimeRange(since, until, serials)
        usage = await figures.usage(span)
        if usage.calls or await figures.asked(span) or await figures.put_to_people(span):
            return False
        return not (await figures.swept(span)).unknown

    async def due(self, data: Mapping[str, Any]) -> tuple[Addressee, DigestView] | None:
        """Return the chat and figures of a ``digest`` event; None if its person is gone or may no longer see them."""
        chat = chat_ref(data.get("chat"))
        if chat is not None and chat.channel == NOTIFY:
            return Addressee(chat, self.context.lang), await self._view_of(data, ())
        person = await People(self._db).get(int(data.get("person_id") or 0))
        if chat is None or person is None or not _may_see(actor_of(person), chat):
            return None
        actor = actor_of(person)
        return Addressee(chat, actor.lang), await self._view_of(data, actor.phones)

    async def _view_of(self, data: Mapping[str, Any], phones: Sequence[str]) -> DigestView:
        """Return the figures of a ``digest`` event."""
        since, until = (datetime.fromisoformat(str(data[end])).astimezone(self._zone) for end in ("since", "until"))
        return await self._view(cast("Period", data["kind"]), since, until, phones)

    # Alerts -----------------------------------------------------------------------------------------------------------

    async def alert(self, data: Mapping[str, Any]) -> AlertView:
        """Return the alert of an ``alert`` event."""
        subject, _, name = str(data["subject"]).partition(":")
        seconds = data.get("seconds")
        return AlertView(
            subject=cast("AlertSubject", subject),
            since=datetime.fromisoformat(str(data["since"])).astimezone(self._zone),
            name=name.partition(":")[0] if subject == "webhook" else (await self._book()).name(name),
            why=str(data.get("why") or ""),
            seconds=float(seconds) if data.get("state") == "up" and seconds is not None else None,
            figures={key: str(data[key]) for key in ("spent", "limit", "currency") if key in data},
        )

    async def alerted(self, at: datetime | None = None) -> list[Addressee]:
        """Return the chats that get alerts: the one in the settings, else every owner's own.

        at: when the alert was raised. Owners who came later do not get it; None for all owners.
        """
        owners = await self._owners()
        if at is not None:
            owners = [person for person in owners if person.paired_at <= at]
            if not owners:
                return []
        if wanted := self.context.alert_chat:
            person = await People(self._db).by_telegram(int(wanted))
            lang: Lang = actor_of(person).lang if person is not None else self.context.lang
            return [Addressee(telegram_chat(wanted), lang)]
        return [Addressee(own_chat(person), actor_of(person).lang) for person in owners]


def _may_see(actor: Actor, chat: ChatRef) -> bool:
    """Tell whether the person's limits (still) allow this chat."""
    return not actor.chats or chat.key in actor.chats


def _chat(row: DigestChatRow, person: PersonRow) -> DigestChat:
    """Return the digests of a chat: none if its person is only a viewer now, or may no longer use this chat."""
    actor, chat = actor_of(person), chat_ref(row.chat)
    allowed = actor.role.covers(Role.OPERATOR) and chat is not None and _may_see(actor, chat)
    wanted = {"daily": row.daily, "weekly": row.weekly}
    kinds = frozenset(kind for kind, on in wanted.items() if on and allowed)
    return DigestChat(row.chat_key, row.chat, row.person_id, row.changed_at, kinds, actor.phones)


def _parted(rows: Sequence[AskedRow], begins: Sequence[datetime]) -> list[tuple[datetime, list[AskedRow]]]:
    """Return for each of these moments the questions that were read from then on until the next."""
    parts: list[tuple[datetime, list[AskedRow]]] = [(begin, []) for begin in begins]
    place = 0
    for row in sorted(rows, key=lambda row: row.asked_at):
        while place + 1 < len(begins) and row.asked_at >= begins[place + 1]:
            place += 1
        parts[place][1].append(row)
    return parts


def _bar(begin: datetime, rows: Sequence[AskedRow], now: datetime) -> Bar:
    sent = [row for row in rows if row.state == SENT]
    by_person = sum(row.by_person for row in sent)
    return Bar(begin, len(sent) - by_person, by_person, sum(_is_left(row, now) for row in rows))


def _is_left(row: AskedRow, now: datetime) -> bool:
    """Tell whether a question is left without an answer, as in ``storage.answers.AnswerFilter.unanswered``."""
    return row.state in LEFT or (row.state != SENT and row.changed_at < now - FORGOTTEN)


def _cost(usage: UsageFigures, prices: Prices) -> float | None:
    """Return the cost of all models; None if no price is known."""
    known = _known(_priced(one, prices) for one in usage.models)
    return sum(known) if known or prices else None


def _shares(usage: UsageFigures, prices: Prices) -> tuple[ModelShare, ...]:
    by_name: dict[str, list[ModelUsage]] = {}
    for one in usage.models:
        by_name.setdefault(one.model, []).append(one)
    shares = []
    for name, parts in by_name.items():
        known = _known(_priced(one, prices) for one in parts)
        shares.append(ModelShare(name, sum(one.calls for one in parts), sum(known) if known else None))
    return tuple(sorted((share for share in shares if share.name and share.calls), key=lambda share: -share.calls))


def _known(costs: Iterable[float | None]) -> list[float]:
    return [cost for cost in costs if cost is not None]


def _priced(one: ModelUsage, prices: Prices) -> float | None:
    """Return the cost that was stored with the steps, else by today's prices; None if neither is known."""
    if one.cost is not None:
        return one.cost
    used = Usage(tokens_in=one.tokens_in, tokens_out=one.tokens_out, tokens_cached=one.tokens_cached)
    return prices.of(one.model, used)


def _median(answered: Sequence[AskedRow]) -> float | None:
    took = [max(0.0, (row.changed_at - row.asked_at).total_seconds()) for row in answered]
    return statistics.median(took) if took else None


def _often(rows: Iterable[AskedRow]) -> tuple[Often, ...]:
    """Group questions in the same words, as ``/answers unanswered`` does; the most frequent first."""
    groups: dict[str, list[AskedRow]] = {}
    for row in rows:
        groups.setdefault(stripped(row.question) or row.question.strip(), []).append(row)
    newest_first = sorted(groups.values(), key=lambda group: group[-1].id, reverse=True)
    return tuple(Often(group[-1].question, len(group)) for group in sorted(newest_first, key=len, reverse=True))
