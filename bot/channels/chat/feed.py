"""Shows the event log in the chats of a channel: one live card per run, question cards, outcomes, notifications."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from agent_core.lru import keep_newest
from bot.channels.chat.cards import Card
from bot.channels.chat.digest import alert_card, digest_card
from bot.channels.chat.outlet import CardOutlet, LiveCard
from bot.channels.chat.questions import question_card, reminder_card
from bot.channels.chat.run_cards import sent_lines
from bot.channels.chat.schedules import news_card
from bot.channels.chat.sweeps import card_of
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Outgoing
from bot.desk.actors import ChatRef, Role
from bot.desk.desk import Desk
from bot.desk.digest_views import Addressee
from bot.desk.views import EventView, QuestionView, RunStatus, RunView
from scheduler.times.shop import URGENT
from storage.questions import MOST_REMINDERS
from storage.repository import run_shielded

log = structlog.get_logger(__name__)

TRIES = 3
REMEMBERED = 500
MOST_FOLLOWING = 12_000  # characters of a run's replies, in messages after its card
QUESTION_EVENTS = {"question", "answered", "closed", "reminder", "escalated", "learnt"}
# They belong to no run: due digests, outages and recoveries, missed ticks.
NOTIFICATIONS = {"digest", "alert", "schedule"}
FINAL = {status.value for status in RunStatus if status.final}


@dataclass(slots=True)
class _Seen:
    """Facts about a run from its events, which its row lacks: the newest thought and picture."""

    thinking: str = ""
    pictured: EventView | None = None  # the newest event with a picture
    closed: set[str] = field(default_factory=set)  # questions whose cards show their end

    def look(self, event: EventView) -> None:
        if event.pictured:
            self.pictured = event


class Feed:
    """The feed of the event log for one channel."""

    def __init__(self, desk: Desk, outlet: CardOutlet, *, clock: Callable[[], datetime]) -> None:
        self._desk = desk
        self._outlet = outlet
        self._clock = clock
        self._held: dict[str, deque[EventView]] = {}  # by run: an event that failed, and those after it
        self._last = 0  # the newest event that was handled
        self._seen: dict[str, _Seen] = {}
        self._over: OrderedDict[str, None] = OrderedDict()  # runs whose outcome is out; their rows may lag behind
        self._elsewhere: OrderedDict[str, None] = OrderedDict()  # runs that no chat of this channel shows

    def is_behind(self, event_id: int) -> bool:
        """Tell whether this event, or one before it, is still to be shown."""
        return bool(self._held) or self._last < event_id

    async def run(self) -> None:
        """Follow the log for ever. Whatever must arrive is in the outbox before its event is confirmed.

        A failure holds up its own run only. Until it was tried often enough nothing is confirmed: after an interruption
        the events come again.
        """
        self._held.clear()
        self._last = await self._desk.position(self._outlet.channel)
        async with asyncio.TaskGroup() as group:
            async for event in self._desk.events(self._last):
                behind = self._held.get(event.run_id)
                if behind is not None:
                    behind.append(event)
                elif not await run_shielded(self._is_shown(event)):
                    self._held[event.run_id] = deque([event])
                    group.create_task(self._try_again(event.run_id), name=f"{self._outlet.channel}-event-{event.id}")
                self._last = event.id
                if not self._is_elsewhere(event):  # those are confirmed with the next one: again they do no harm
                    await self._confirm()

    async def _is_shown(self, event: EventView) -> bool:
        try:
            await self._show(event)
        except Exception as error:  # one event must not stop the others; logged, nothing is swallowed
            if self._outlet.is_away(error):
                raise  # not the event's fault: unconfirmed, it comes again
            channel, said = self._outlet.channel, self._outlet.safe(error)
            log.exception("event_not_shown", channel=channel, seq=event.id, kind=event.kind, error=said)
            return False
        return True

    async def _try_again(self, run_id: str) -> None:
        """Show the events of a run whose first one has failed, in order."""
        events, failures = self._held[run_id], 1
        while events:
            if failures:
                await asyncio.sleep(self._outlet.wait_after(failures))
            failures = 0 if await run_shielded(self._is_shown(events[0])) else failures + 1
            if failures in {0, TRIES}:
                events.popleft()
                failures = 0
        del self._held[run_id]
        await self._confirm()

    async def _confirm(self) -> None:
        if not self._held:
            await run_shielded(self._desk.confirm(self._outlet.channel, self._last))

    async def _show(self, event: EventView) -> None:
        if event.kind in NOTIFICATIONS:
            await self._notify(event)
            return
        if self._is_elsewhere(event):
            return
        run = await self._desk.runs.get(event.run_id)
        if run is None or _is_asked_for(event, run):
            return
        if run.chat is None or run.chat.channel != self._outlet.channel:
            keep_newest(self._elsewhere, run.id, None, REMEMBERED)
            await self._show_elsewhere(event, run)
            return
        self._elsewhere.pop(run.id, None)
        if run.parent:
            await self._show_swept(event, run, run.chat)
        else:
            await self._show_run(event, run, run.chat)

    async def _notify(self, event: EventView) -> None:
        """Show an event that belongs to no run, once for each chat however often this is called."""
        if event.kind == "digest":
            due = await self._desk.digest.due(event.data)
            if due is not None:
                to, view = due
                await self._put_notification(to, await digest_card(view, texts(to.lang)), event)
        elif event.kind == "schedule":
            news = await self._desk.schedules.news(event.data)
            if news is not None:
                await self._put_notification(Addressee(news.chat, news.lang), news_card(news, texts(news.lang)), event)
        else:
            alert = await self._desk.digest.alert(event.data)
            for to in await self._desk.digest.alerted(event.created_at):
                await self._put_notification(to, alert_card(alert, texts(to.lang)), event)

    async def _put_notification(self, to: Addressee, card: Card, event: EventView) -> None:
        if to.chat.channel == self._outlet.channel:
            await self._outlet.put(Outgoing(card, to.chat, once=f"{event.kind}:{event.id}:{to.chat.chat_id}"))

    def _is_elsewhere(self, event: EventView) -> bool:
        """Tell whether an event only brings up to date what no chat of this channel shows, like most of a run's."""
        return event.run_id in self._elsewhere and not (event.kind in QUESTION_EVENTS or _ends(event))

    async def _show_run(self, event: EventView, run: RunView, chat: ChatRef) -> None:
        told = run.id in self._over and event.kind != "outcome"
        if told or _is_silent(run):
            return  # its row closes after its outcome is out: nothing more is shown, or remembered
        seen = self._seen.setdefault(run.id, _Seen())
        seen.look(event)
        if event.kind == "thinking":
            seen.thinking = str(event.data.get("text") or event.data.get("thinking") or "")
            if self._outlet.think(run.id, chat, seen.thinking):
                return  # the draft shows it; the whole thought comes with its step
        else:
            self._outlet.thought_over(run.id)
        if event.kind in {"step", "resumed"}:
            seen.thinking = ""
        if event.kind in QUESTION_EVENTS:
            await self._show_question(event, run, seen)
        if _ends(event):
            # A run that no agent carried out (stopped in the queue, no phone) ends only with its row.
            await self._show_outcome(_ended(run, event), chat, seen)
        else:
            self._show_live(run.id, chat)

    async def _show_elsewhere(self, event: EventView, run: RunView) -> None:
        """Show the question of another channel's run in the chat of its request, or in the chat that it is escalated
        to.
        """
        if event.kind not in QUESTION_EVENTS - {"question", "reminder"}:
            return
        view = await self._desk.questions.get(str(event.data.get("question") or ""))
        if view is not None and event.kind == "escalated":
            await self._escalate(view, run)
        elif view is not None:
            await self._put_question(view, run, None)

    async def _show_swept(self, event: EventView, run: RunView, chat: ChatRef) -> None:
        """Show an event of a sweep's contact or a plan's part, which has no card of its own; its questions have.

        A plan's card shows the newest picture of its parts.
        """
        seen = self._seen.setdefault(run.id, _Seen())
        seen.look(event)
        if run.in_plan and event.pictured and run.parent not in self._over:
            self._seen.setdefault(run.parent, _Seen()).look(event)
            self._show_live(run.parent, chat)
        if event.kind in QUESTION_EVENTS:
            await self._show_question(event, run, seen)
        if event.kind == "status" and event.data.get("status") in FINAL:
            await self._close_questions(run)
            self._seen.pop(run.id, None)
        if event.kind in {"status", "reply", *QUESTION_EVENTS} and run.parent not in self._over:
            self._show_live(run.parent, chat)

    async def _close_questions(self, run: RunView) -> None:
        """Show open questions of an ended run as closed; their rows may be closed after this."""
        for view in await self._desk.questions.of_run(run.id):
            if not view.by:
                await self._put_question(replace(view, open=False), run, None)

    async def _show_outcome(self, run: RunView, chat: ChatRef, seen: _Seen) -> None:
        keep_newest(self._over, run.id, None, REMEMBERED)
        card = await self._card(run, seen)
        await self._outlet.put(Outgoing(card, chat, shows=f"run:{run.id}"), run=run, soundless=run.watch)
        if run.replies and run.sweep is None and run.plan is None:
            await self._put_all_sent(run, chat, card)
        await self._close_questions(run)
        self._seen.pop(run.id, None)

    async def _put_all_sent(self, run: RunView, chat: ChatRef, card: Card) -> None:
        """Send the customer's texts in full: the part that does not fit on the card follows it, up to
        MOST_FOLLOWING.
        """
        words = texts(run.lang)
        shown = await self._desk.runs.card(run.id)
        if shown is not None and shown.chat.key != chat.key:
            shown = None
        captioned = card.picture is not None or (shown is not None and shown.picture)
        every = sent_lines(run.replies, words, room=MOST_FOLLOWING)
        listed = sent_lines(run.replies, words) == every
        if listed and self._outlet.shows_all(card, captioned=captioned):
            return
        title = words.get("card.all_sent", count=len(run.replies))
        place, answers = (shown.chat, shown.message_id) if shown is not None else (chat, "")
        message = Outgoing(Card(title, tuple(every)), place, answers, once=f"sent:{run.id}")
        await self._outlet.put(message, run=None if answers else run)

    async def live_card(self, run_id: str, chat_id: str) -> LiveCard | None:
        """Draw the current card of a run; None if it is over (its outcome is in the store), or is shown elsewhere."""
        run = await self._desk.runs.get(run_id)
        if run is None or run.chat is None or run.status.final or run_id in self._over:
            return None
        if _is_silent(run) or run.chat.chat_id != chat_id:
            return None
        seen = self._seen.get(run_id, _Seen())
        return LiveCard(await self._card(run, seen), run)

    async def _card(self, run: RunView, seen: _Seen) -> Card:
        picture = await self._picture(seen)
        return card_of(run, texts(run.lang), now=self._clock(), thinking=seen.thinking, picture=picture)

    async def _picture(self, seen: _Seen) -> bytes | None:
        return await self._desk.event_picture(seen.pictured) if seen.pictured is not None else None

    async def _show_question(self, event: EventView, run: RunView, seen: _Seen) -> None:
        question_id = str(event.data.get("id" if event.kind == "question" else "question") or "")
        if event.kind == "answered" and question_id in seen.closed:
            return
        view = await self._desk.questions.get(question_id)
        if view is None:
            log.warning("question_missing", channel=self._outlet.channel, question=question_id, run=run.id)
        elif event.kind == "reminder":
            await self._remind(view, run, int(event.data.get("number") or 0))
        elif event.kind == "escalated":
            await self._escalate(view, run)
        else:
            if not view.open:
                seen.closed.add(question_id)
            await self._put_question(view, run, await self._picture(seen))

    async def _put_question(self, view: QuestionView, run: RunView, picture: bytes | None) -> None:
        """Put every card of a question: in the run's chat, and wherever else it was shown."""
        first = view.chat or run.chat
        places = [("", first)]
        places += [(f"@{name}", chat) for name, chat in await self._desk.questions.copies(view.id)]
        for name, chat in places:
            if chat is not None and chat.channel == self._outlet.channel:
                await self._put_card(view, run, chat, name, picture)
        is_ours = first is not None and first.channel == self._outlet.channel
        for number in range(1, MOST_REMINDERS + 1) if is_ours and not view.open else ():
            ref = f"{view.id}@remind{number}"
            shown = await self._desk.questions.card(ref)
            if shown is not None and first is not None and shown.chat.key == first.key:
                card = reminder_card(view, texts(view.lang), now=self._clock())
                await self._outlet.put(Outgoing(card, shown.chat, shows=f"question:{ref}"))

    async def _put_card(
        self, view: QuestionView, run: RunView, chat: ChatRef, name: str, picture: bytes | None
    ) -> None:
        words, now = texts(view.lang), picture if view.open else None
        alike = len(await self._desk.questions.alike(view.id, chat=chat)) if view.open else 0
        approves = await self._approves(chat)
        card = question_card(view, words, run=run, picture=now, alike=alike, approves=approves)
        # A card that was requested stays in the chat of the request.
        of_phone = run if not name or name.startswith("@escalated:") else None
        unseen_end = not view.open and not view.by  # it ended with its run, whose card says so
        message = Outgoing(card, chat, shows=f"question:{view.id}{name}", changes=unseen_end)
        await self._outlet.put(message, run=of_phone, urgent=view.question.kind in URGENT)

    async def _approves(self, chat: ChatRef) -> bool:
        """Tell whether an owner sees the messages of a chat: a private chat is one person's."""
        if chat.kind != "private":
            return True
        actor = await self._desk.people.actor(self._outlet.channel, chat.chat_id)
        return actor is not None and actor.role is Role.OWNER

    async def _remind(self, view: QuestionView, run: RunView, number: int) -> None:
        """Answer the card with a short reminder; show the card itself if it was lost, or somebody else sees it now."""
        chat = view.chat or run.chat
        if not view.open or chat is None or chat.channel != self._outlet.channel:
            return
        shown = await self._desk.questions.card(view.id)
        if shown is None or shown.chat.key != chat.key:
            await self._put_card(view, run, chat, "", await self._desk.questions.picture(view.id))
            return
        if not number:
            return  # it was passed on before
        card = reminder_card(view, texts(view.lang), now=self._clock())
        place = shown.chat  # with the topic of the card
        message = Outgoing(card, place, shown.message_id, shows=f"question:{view.id}@remind{number}")
        await self._outlet.put(message, urgent=view.question.kind in URGENT)

    async def again(self, shown: Sequence[tuple[str, str]]) -> None:
        """Show again the still open ones of these: ``run`` or ``question``, and its id as the refs know it."""
        for kind, name in shown:
            run = await self._desk.runs.get(name) if kind == "run" else None
            if run is not None and run.chat is not None and not run.status.final:
                self._show_live(run.id, run.chat)
            view = await self._desk.questions.get(name.partition("@")[0]) if kind == "question" else None
            of = await self._desk.runs.get(view.run_id) if view is not None and view.open else None
            if view is not None and of is not None:
                await self._put_question(view, of, await self._desk.questions.picture(view.id))

    async def not_shown(self, ref: str) -> None:
        """Handle a message that was given up: a question that its chat refused is shown to somebody else at once."""
        kind, _, question_id = ref.partition(":")
        view = await self._desk.questions.get(question_id) if kind == "question" and "@" not in question_id else None
        run = await self._desk.runs.get(view.run_id) if view is not None else None
        if view is not None and run is not None:
            await self._escalate(view, run)

    async def _escalate(self, view: QuestionView, run: RunView) -> None:
        """Show it to those who have not seen it.

        Their cards are remembered first, because an answer closes them, too.
        """
        if not view.open:
            return
        chats = await self._desk.questions.escalate(view.id)
        names = await self._desk.questions.copies(view.id)
        picture = await self._desk.questions.picture(view.id)
        for name, chat in names:
            if chat in chats and name.startswith("escalated:") and chat.channel == self._outlet.channel:
                await self._put_card(view, run, chat, f"@{name}", picture)

    def _show_live(self, run_id: str, chat: ChatRef) -> None:
        self._outlet.show_live(chat, run_id, lambda chat_id: self.live_card(run_id, chat_id))


def _is_asked_for(event: EventView, run: RunView) -> bool:
    """Tell whether this is the beginning of a run that a chat requested: the chat's answer to that is its card.

    If ours came first, the card would answer no message, and an accepted offer would keep its buttons.
    """
    is_first = event.data.get("status") == "queued" and event.data.get("attempt") == 1
    return event.kind == "status" and is_first and not run.schedule_id


def _ends(event: EventView) -> bool:
    return event.kind == "outcome" or (event.kind == "status" and event.data.get("status") in FINAL)


def _is_silent(run: RunView) -> bool:
    """Tell whether it is a sweep without anything to tell."""
    return run.sweep is not None and run.sweep.silent


def _ended(run: RunView, event: EventView) -> RunView:
    """Return the run with its outcome's values, because the event is written before the row is closed."""
    data = event.data
    if run.status.final or data.get("status") not in set(RunStatus):
        return run
    return replace(
        run,
        status=RunStatus(data["status"]),
        message=str(data.get("message") or run.message),
        error_kind=str(data.get("error_kind") or run.error_kind),
        ended_at=run.ended_at or event.created_at,
    )
