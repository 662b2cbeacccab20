"""The reply flow: from the customer's newest messages to a delivered answer, or to a person.

The gate may end a run before the model's finish in only two cases: nothing is new, or no answer is sure (a person
decides). If the knowledge base keeps failing, the run is put off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from agent_core.apps.learnt import LearntApp, differs, version_of
from agent_core.devices.base import Key
from agent_core.errors import DeviceError, KnowledgeError
from agent_core.loop import questions
from agent_core.loop.outcome import ActResult
from agent_core.perception.compare import fingerprint, same_name, without_status
from agent_core.perception.lists import ChatRow
from agent_core.perception.observer import Observation
from agent_core.perception.readings import BubbleState, ChatScreen, Side
from agent_core.policies.customer_reply import nothing_new
from agent_core.ports import Chooser, Chosen, KnowledgeBase, Record, ReplyState
from agent_core.reply.asked import comes_from, next_query, query_for
from agent_core.reply.choosing import decide
from agent_core.reply.hand_over import HandOver
from agent_core.reply.leftovers import Fate, Leftovers
from agent_core.reply.looking import ChatLooks
from agent_core.reply.match import same_cluster
from agent_core.reply.namesakes import Namesakes
from agent_core.reply.outcome import (
    KNOWLEDGE_TRIES,
    DeliveryResult,
    Outcome,
    ReplyStage,
    ask,
    check_chat,
    end,
    fail,
    nothing_left,
    put_off,
    sent_so_far,
    stage_of,
    waits_elsewhere,
)
from agent_core.reply.planning import planned_with, stands
from agent_core.reply.rows import Rows
from agent_core.reply.sender import ReplyContext
from agent_core.reply.sureness.plain import stripped
from agent_core.session import AskedQuestion, Cluster, Planned, Session, Status
from agent_core.sweep import IN_CHAT, Aside
from agent_core.sweep.rows import NOWHERE, aside_of, digest
from agent_core.texts import say, told

log = structlog.get_logger(__name__)

LEAVES = 2  # times in a row that another chat is left: the first Back may only close a keyboard
LOOKS_ABOVE = 3  # tries to read the chat again after an answer


@dataclass(frozen=True, slots=True)
class Answering:
    """The settings and sources for finding answers.

    chooser: picks among records, if there is one.
    part_chars: a longer text is sent in parts.
    checked: see ``AgentSettings``.
    """

    knowledge: KnowledgeBase
    chooser: Chooser | None
    part_chars: int
    checked: Sequence[str] = ()


class ReplyFlow:
    """One run's replies. Everything that must survive a restart is in the session and the ledger."""

    def __init__(
        self,
        session: Session,
        context: ReplyContext,
        answering: Answering,
        looks: ChatLooks,
        rows: Rows,
        leftovers: Leftovers,
        hand_over: HandOver,
        namesakes: Namesakes,
    ) -> None:
        self.namesakes = namesakes
        self._session = session
        self._context = context
        self._answering = answering
        self._looks = looks
        self._rows = rows
        self._leftovers = leftovers
        self._hand_over = hand_over
        # For the words of a question: whether this attempt found a sure answer.
        self._told_sure: dict[str, bool] = {}
        self._left = 0  # times in a row that another chat was left
        self._look_known = False  # in this attempt the page's look was compared with the learnt one, and matched

    # -- before the model is asked ------------------------------------------------------------------------------

    async def fate(self) -> str:
        """Return what the customer has got from this run, in words for a person: an error ends it now."""
        session, planned = self._session, self._session.planned
        row = await self._context.ledger.find(self._rows.key(planned.fingerprint)) if planned is not None else None
        if stage_of(session, row) in (ReplyStage.SENDING, ReplyStage.UNCLEAR):
            return say(session.lang, "run.maybe_sent")
        return sent_so_far(session)

    async def before_model(self, seen: Observation) -> ActResult | None:
        """Do what the screen calls for without a model; return None if the model is to act.

        That is to open a chat by its number, continue a waiting reply, settle an old one, report what cannot be read,
        or end the run because nothing is new.
        """
        session, chat = self._session, seen.chat
        if await self._rows.look_elsewhere():
            session.gate.knowledge_done = False
            session.gate.pending_question = next_query(session.cluster)
        if session.gate.knowledge_done:
            await self._look_above(seen, last=True)
            return None
        refusal = check_chat(chat, session.gate, bound=True)
        self._left = self._left if refusal is not None and refusal.result is DeliveryResult.WRONG_CHAT else 0
        if chat is None or refusal is not None:
            if session.planned is not None and session.planned.given_up is not None:
                # The next run that sees that chat removes the typed text from its input.
                return await self._hand_over.skip(session.planned.given_up, session.planned.fingerprint)
            return await self._on_the_way(seen, refusal)
        if await self._may_be_a_namesakes():
            return await self._leave("run.left_namesake")
        settled, touched = await self._settle_own_rows(chat)
        if settled is not None:
            return settled
        if session.planned is not None and session.planned.given_up is not None:
            return await self._hand_over.skip(session.planned.given_up, session.planned.fingerprint)
        if touched:
            seen = await self._context.look()
        await self._look_above(seen)
        if session.planned is not None and session.planned.text:
            if session.send_anyway and seen.chat is not None:
                await self._keep_newer(session.planned, seen.chat)
            return await self._go_on(session.planned)
        return await self._take_questions(seen)

    async def _look_above(self, seen: Observation, *, last: bool = False) -> None:
        """Record messages that arrived just while we sent: they are above our answer, and nothing else looks there.

        last: the run may end afterwards, so scrolling is worth it.
        """
        session, cluster = self._session, self._session.cluster
        if cluster is None:
            return
        looks = 0
        while not cluster.looked_above and not self._in_chat(seen) and looks < LOOKS_ABOVE:
            seen, looks = await self._context.look(), looks + 1
        if last and not cluster.looked_above and self._in_chat(seen) and _all_ours(seen.chat):
            seen = await self._looks.above_ours(seen)
        if seen.chat is None or not self._in_chat(seen):
            return
        await self._rows.missed(seen.chat)
        cluster.looked_above = last or not _all_ours(seen.chat)
        if session.gate.knowledge_done and cluster.left:
            session.gate.knowledge_done = False
            session.gate.pending_question = next_query(cluster)

    def _in_chat(self, seen: Observation) -> bool:
        return check_chat(seen.chat, self._session.gate, bound=True) is None

    async def _keep_newer(self, planned: Planned, chat: ChatScreen) -> None:
        """Open rows for newer questions before a planned reply, or its rest, is sent although the chat has changed."""
        self._session.send_anyway = False
        if not planned.ours and same_cluster(planned.cluster, planned.read_by, chat):
            await self._rows.take(chat, await self._version())

    async def _take_questions(self, seen: Observation, *, lowest: bool = False) -> ActResult | None:
        """Open rows for the customer's newest messages. ``lowest``: the page is certainly at its lower end."""
        session = self._session
        if seen.chat is not None and self._rows.current(seen.chat) and session.cluster is not None:
            return self._unreadable(session.cluster)
        seen = await self._looks.whole(seen)
        chat = seen.chat
        if chat is None or check_chat(chat, session.gate) is not None:
            return None
        if not lowest and self._may_be_scrolled:
            return await self._take_questions(await self._looks.lowest(seen), lowest=True)
        session.elsewhere = None  # found again below
        newest = chat.newest
        if newest is not None and newest.side is Side.ME and newest.state is BubbleState.FAILED:
            return end(session, Status.FAILED, "delivery.red_mark", app=self._context.profile.known_as)
        if nothing_new(chat):
            return await self._nothing_new(seen, chat, lowest=lowest)
        if newest is not None and newest.side is Side.ME:
            return None  # our text is still on its way: the next observation tells
        if session.cluster is None:  # a dead run may have left something open above our newest texts
            await self._rows.adopt(replace(chat, bubbles=chat.bubbles[: len(chat.bubbles) - len(chat.question)]))
        cluster = await self._rows.take(chat, await self._version())
        if session.planned is not None and session.planned.text:
            return await self._hand_over.written_before(session.planned, chat)
        if not cluster.left:
            return self._nothing_more()
        return self._unreadable(cluster)

    async def _nothing_new(self, seen: Observation, chat: ChatScreen, *, lowest: bool) -> ActResult | None:
        """End the run, because our own text is the newest, unless something above it is still open."""
        session = self._session
        undecided = await self._rows.undecided(chat)
        if undecided is not None:
            return ask(session, questions.delivery_unknown(session, undecided), "delivery.unknown")
        if _all_ours(chat):  # a message written while we sent may stand above the screen
            chat = (await self._looks.above_ours(seen)).chat or chat
        adopted = await self._rows.adopt(chat)
        if adopted is None and lowest:
            await self._rows.withdraw()
            await self._rows.take_over()
            if session.elsewhere is not None:
                return waits_elsewhere(session)
            return nothing_left(session, "run.nothing_new", contact=session.gate.contact)
        if adopted is None:
            return await self._take_questions(await self._looks.lowest(seen), lowest=True)
        if session.planned is not None and session.planned.text:
            return await self._go_on(session.planned)
        session.gate.pending_question = next_query(adopted)  # the model sees our answer and nothing to ask
        return self._unreadable(adopted)

    @property
    def _may_be_scrolled(self) -> bool:
        """True if the chat may be scrolled up: by a person if it was already open, or by the model's swipes."""
        steps = self._session.steps
        return not steps or any(step.action is not None and step.action["kind"] == "swipe" for step in steps)

    def _unreadable(self, cluster: Cluster) -> ActResult | None:
        """Ask a person about a message that cannot be read, once everything else is answered."""
        if cluster.left_readable or not cluster.left:
            return None
        question = cluster.left[0]
        self._session.planned = self._plan_for(question, cluster, "")
        return ask(self._session, questions.unreadable(self._session, question), "run.waiting")

    async def _on_the_way(self, seen: Observation, refusal: Outcome | None) -> ActResult | None:
        """Lead the way to the contact's chat, which is not in front yet; None if the model is to find it."""
        if seen.chat is not None:
            await self._tidy_another_chat(seen.chat)
            if (left := await self._leave_another(seen.chat, refusal)) is not None:
                return left
        return await self._open_by_number(seen.chat) or await self.namesakes.ask(seen)

    async def _leave_another(self, chat: ChatScreen, refusal: Outcome | None) -> ActResult | None:
        """Leave another customer's chat that was opened by mistake; None if it is none or Back does not lead out of it.

        The ledger records that this customer waits, because the chat is no longer marked as unread.
        """
        session, title = self._session, without_status(chat.title)
        why = aside_of(ChatRow(title, chat.title_box or NOWHERE), title, (), self._context.profile)
        wrong = refusal is not None and refusal.result is DeliveryResult.WRONG_CHAT
        if not wrong or not session.steps or why is Aside.SERVICE or self._left >= LEAVES:
            return None
        newest = chat.newest
        theirs = not chat.sure if newest is None else newest.side is Side.THEM or not newest.sure
        if theirs and not chat.group and not self.namesakes.was_read(chat):
            state = IN_CHAT + digest(fingerprint(chat))
            await self._context.ledger.keep_waiting(session.serial, self._context.profile.key, title, state)
        self._left += 1
        log.info("left_another_chat", app=self._context.profile.key, run_id=session.run_id)
        return await self._leave("run.left_another", title=title)

    async def _may_be_a_namesakes(self) -> bool:
        """Tell whether the chat in front, open since the run began, may be another contact's of the same name."""
        session = self._session
        opened = session.gate.row_entered or bool(session.gate.chat_confirmed)
        return not opened and session.cluster is None and await self.namesakes.chosen() is not None

    async def _leave(self, key: str, **values: object) -> ActResult:
        """Go back from a chat that is not the contact's, or may not be."""
        await self._context.lease.check()
        await self._context.device.key(Key.BACK)
        return ActResult(say(self._session.lang, key, contact=self._session.gate.contact, **values))

    async def _open_by_number(self, chat: ChatScreen | None) -> ActResult | None:
        """Let the app open the chat by the contact's number, if known, once in a run. Its title is still compared."""
        session, gate, context = self._session, self._session.gate, self._context
        url = context.profile.chat_url_of(gate.number)
        if session.number_tried or url is None:
            return None
        if chat is not None and same_name(chat.title, gate.contact) and not chat.group:
            return None
        session.number_tried = True
        await context.lease.check()
        try:
            await context.device.open_url(url, context.profile.package_among(await context.device.packages()))
        except DeviceError as error:
            log.info("not_opened_by_number", app=context.profile.key, error=str(error))
            return None  # the model finds the way
        gate.row_entered = True
        return ActResult(say(session.lang, "run.opened_by_number", contact=gate.contact))

    async def _settle_own_rows(self, chat: ChatScreen) -> tuple[ActResult | None, bool]:
        """Settle replies to this contact that a dead attempt left in typing or sending.

        Returns what follows from them, if anything, and whether the chat must be read again.
        """
        session, touched = self._session, False
        for row in await self._leftovers.rows(session.serial, session.gate.contact):
            row, fate = await self._leftovers.settle(row, chat, session.gate)  # noqa: PLW2901 - as it is now
            touched = True
            match fate:
                case Fate.SENT if row.run_id == session.run_id:
                    return await self._hand_over.found_sent(row, "run.resolved_sent"), True
                case Fate.SENT:
                    await self._rows.tell_row(row, ReplyState.SENT)
                case Fate.RED_MARK:
                    await self._rows.tell_row(row, ReplyState.FAILED)
                    return end(session, Status.FAILED, "delivery.red_mark", app=self._context.profile.known_as), True
                case Fate.UNKNOWN:
                    await self._context.ledger.advance(row.id, ReplyState.UNKNOWN, expected=[ReplyState.SENDING])
                    await self._rows.tell_row(row, ReplyState.UNKNOWN)
                    question = questions.delivery_unknown(session, row)
                    return ask(session, question, "delivery.unknown"), True
                case _:
                    continue
        return None, touched

    async def _tidy_another_chat(self, chat: ChatScreen) -> None:
        """Remove the text that a dead run left in the input of the chat in front, which is another contact's."""
        if not chat.sure or chat.group or same_name(chat.title, self._session.gate.contact):
            return
        gate = self._session.gate.model_copy(update={"contact": chat.title, "chat_confirmed": ""})
        for row in await self._leftovers.rows(self._session.serial, chat.title):
            row, fate = await self._leftovers.settle(row, chat, gate)  # noqa: PLW2901 - as it is now
            if fate is Fate.SENT:
                await self._rows.tell_row(row, ReplyState.SENT)
            elif fate is Fate.RED_MARK:
                await self._rows.tell_row(row, ReplyState.FAILED)
            # Rows that stay open are for that contact's next run.

    # -- GET_KNOWLEDGE_DATA ------------------------------------------------------------------------------------

    async def get_knowledge(self, query: str) -> ActResult:
        """Ask the knowledge base, choose and deliver. In front must be the contact's chat with a question in it."""
        session = self._session
        if not query.strip():
            return fail(session, "run.query_blank")
        seen = await self._context.look()
        known = seen.chat is not None and seen.chat.partial and self._rows.current(seen.chat)
        if seen.chat is not None and not seen.chat.sure and not known:
            seen = await self._looks.surer(seen)
        refusal = check_chat(seen.chat, session.gate, bound=known)
        if refusal is not None:
            return self._hand_over.refused(refusal)
        if session.cluster is None:  # the answered questions belonged to an earlier call, which the ledger knows
            session.gate.knowledge_done = False
        early = await self.before_model(seen)
        if early is not None:
            return early
        cluster, question = session.cluster, self._rows.question_for(query)
        if cluster is None or question is None:
            if session.replies:  # an attempt that died may not have told the model
                return ActResult(say(session.lang, "run.resolved_sent", text=session.replies[-1].text))
            if seen.chat is None or seen.chat.newest is None:
                return self._hand_over.refused(Outcome(DeliveryResult.NOT_IN_CHAT))
            return fail(session, "run.nothing_new", contact=session.gate.contact)
        doubt = await self._doubt_about(question)
        if doubt is not None:
            return doubt
        if comes_from(query, question.words):
            return await self._answer(question, cluster, query.strip(), seen)
        log.info("query_replaced", run_id=session.run_id)  # it is not made of the customer's words
        query = query_for(question.words)
        return replace(await self._answer(question, cluster, query, seen), query=query)

    async def _answer(self, question: AskedQuestion, cluster: Cluster, query: str, seen: Observation) -> ActResult:
        session = self._session
        planned = self._plan_for(question, cluster, query)
        try:
            records, chosen = await self._look_up(query, question)
            beside = await self._unsure_beside(question, cluster) if chosen is not None else []
            if beside:
                chosen = None
        except KnowledgeError as error:
            return await self._knowledge_failed(error, question, query)
        session.knowledge_failures = 0
        await self._rows.tell(
            question.ledger_id,
            question.words,
            ReplyState.PLANNED,
            query=planned.query,
            records=tuple(questions.best_first(records)),
            frame=seen.frame,
        )
        session.planned = planned_with(planned, chosen, self._answering.part_chars) if chosen else planned
        if chosen is None:
            chars = self._answering.part_chars
            together = [] if beside else await self._sure_of_each(question, cluster)
            known = (*records, *together)
            sent = [r for r in known if stands(cluster, planned_with(planned, Chosen(r.text, r), chars))]
            if any(record in sent for record in together):
                together = []
            doubt = questions.no_sure_answer(session, planned, records, beside=beside, sent=sent, together=together)
            return ask(session, doubt, "run.waiting")
        return await self._hand(session.planned)

    async def _look_up(self, query: str, question: AskedQuestion) -> tuple[Sequence[Record], Chosen | None]:
        """Return the records for the customer's words, and for the query if it differs, and the sure answer among them.

        The answer is None if a person must decide, or if the words are not all that belongs to the question.
        """
        words = question.words
        found = list(await self._answering.knowledge.retrieve(words))
        if stripped(query) != stripped(words):
            known = {(record.source, record.id, record.text) for record in found}
            more = await self._answering.knowledge.retrieve(query)
            found += [record for record in more if (record.source, record.id, record.text) not in known]
        chosen = await decide(self._answering.chooser, words, query, found) if question.whole else None
        self._told_sure[words] = chosen is not None
        return found, chosen

    async def _sure_of_each(self, question: AskedQuestion, cluster: Cluster) -> list[Record]:
        """Return the sure answer to each message of a question, if it consists of several and each by itself has one.

        A person is offered them as one answer. The rules for a sure answer look at all that was written, together.
        """
        found: list[Record] = []
        for message in _messages_of(question, cluster) if question.whole else ():
            try:
                records = await self._answering.knowledge.retrieve(message)
            except KnowledgeError:
                return []  # a person is asked in any case
            if (chosen := await decide(None, message, message, records)) is None:
                return []
            found.append(chosen.record)
        return found if len({record.text.strip() for record in found}) > 1 else []

    async def _unsure_beside(self, question: AskedQuestion, cluster: Cluster) -> list[dict[str, str | None]]:
        """Return the other questions that have no sure answer of their own, as ``no_sure_answer`` takes them.

        All that the customer wrote since our last answer counts, because it may change the meaning of this question.
        """
        unsure: list[dict[str, str | None]] = []
        for other in cluster.asked:
            if other.ledger_id == question.ledger_id or other.above or (other.whole and not other.readable):
                continue  # a sticker says nothing
            if not await self._is_sure(other):
                log.info("another_question_is_not_sure", run_id=self._session.run_id, row=other.ledger_id)
                row = await self._rows.find(other)
                answer = row.text if row is not None and row.state is ReplyState.SENT else ""
                skipped = row is not None and row.state is ReplyState.SKIPPED
                unsure.append({"words": other.words, "answer": None if skipped else answer})
        return unsure

    async def _is_sure(self, question: AskedQuestion) -> bool:
        """Tell whether a question has a sure answer, was answered without a person, or was recalled.

        Each question is looked up once in an attempt.
        """
        if not question.whole:
            return False
        row = await self._rows.find(question)
        if row is not None and (row.state is ReplyState.WITHDRAWN or (row.state is ReplyState.SENT and not row.person)):
            return True
        if question.words not in self._told_sure:
            await self._look_up(query_for(question.words), question)
        return self._told_sure[question.words]

    async def _hand(self, planned: Planned) -> ActResult:
        """Deliver the text that was chosen just now."""
        if stands(self._session.cluster, planned):
            return await self._hand_over.covered(planned)
        return await self._first_delivery(planned) or await self._hand_over.deliver(planned)

    async def _go_on(self, planned: Planned) -> ActResult:
        """Deliver a text that was chosen before, by a person or an earlier attempt."""
        return await self._first_delivery(planned) or await self._hand_over.go_on(planned)

    async def _first_delivery(self, planned: Planned) -> ActResult | None:
        """Ask a person to look first, in an app version that was never answered in or that looks different now."""
        session, version = self._session, await self._version()
        changed = await self._changed(version)
        if not changed and await self._version_known(version):
            return None
        question = questions.first_delivery(session, planned, self._context.profile.known_as, version, changed)
        return ask(session, question, "run.waiting")

    async def _version(self) -> str:
        return await version_of(self._context.device, self._context.profile)

    async def _version_known(self, version: str) -> bool:
        if version and version == self._session.version_allowed:
            return True
        if f"{self._context.profile.key} {version}" in self._answering.checked:
            return True
        learnt = await self._learnt(version)
        if learnt is not None and learnt.looks:
            return True
        return await self._context.ledger.version_known(self._session.serial, self._context.profile.key, version)

    async def _learnt(self, version: str) -> LearntApp | None:
        if not version:
            return None
        return await self._context.ledger.learnt(self._session.serial, self._context.profile.key, version)

    async def _changed(self, version: str) -> list[str]:
        """Return the parts that look different from what was learnt on this phone, until they match in this attempt.

        A look that a person allowed is learnt.
        """
        learnt = None if self._look_known else await self._learnt(version)
        if learnt is None or not learnt.looks:
            return []
        seen = await self._context.look()
        if seen.chat is None:
            return []
        from agent_core.perception.app_look import look_of  # NumPy: loaded when a picture is read

        look = await asyncio.to_thread(look_of, seen.frame.image, seen.chat, self._context.profile)
        changed = differs(learnt, look)
        if changed and version == self._session.version_allowed:
            await self._context.ledger.learn(self._session.serial, learnt.with_look(look))
            changed = []
        self._look_known = not changed
        return changed

    def _plan_for(self, question: AskedQuestion, cluster: Cluster, query: str) -> Planned:
        return Planned(
            ledger_id=question.ledger_id,
            fingerprint=question.fingerprint,
            asked=question.words,
            cluster=list(cluster.messages),
            ours=list(cluster.ours),
            read_by=cluster.read_by,
            query=query if question.whole else "",  # nothing is learnt from words that are not the whole question
        )

    async def _doubt_about(self, question: AskedQuestion) -> ActResult | None:
        session, row = self._session, await self._rows.find(question)
        if row is not None and row.state is ReplyState.SENT:
            repeat = await self._rows.repeat(question)
            if repeat.state is ReplyState.SKIPPED:
                return self._next_after(question, "run.skipped_one") or self._nothing_more()
            if not await self._rows.claim(repeat):
                return self._left_to_another(question)
            doubt = questions.answered_before(session, row.question, row.text, row.key.fingerprint)
            return ask(session, doubt, "run.waiting")
        # A message that is read slightly differently has another key, so equal words with an open fate are searched
        # for, too.
        other = await self._rows.same_words(question, ReplyState.UNKNOWN)
        if other is not None and not await self._rows.claim(other):
            return self._left_to_another(question)
        if other is not None:
            return ask(session, questions.delivery_unknown(session, other), "delivery.unknown")
        return None

    def _nothing_more(self) -> ActResult:
        """End the run, which has dealt with every question or leaves the rest to another run."""
        if self._session.elsewhere is not None:
            return waits_elsewhere(self._session)
        return nothing_left(self._session, "run.already_skipped")

    def _left_to_another(self, question: AskedQuestion) -> ActResult:
        question.elsewhere = True
        return self._next_after(question, "run.elsewhere_one") or waits_elsewhere(self._session)

    def _next_after(self, question: AskedQuestion, told: str) -> ActResult | None:
        """Finish this question for now and move to the next, which ``told`` announces; None if it was the last."""
        session = self._session
        question.done = True
        session.gate.pending_question = next_query(session.cluster)
        if session.cluster is None or not session.cluster.left:
            return None
        return fail(session, told, question=session.cluster.left[0].words)

    async def _knowledge_failed(self, error: KnowledgeError, question: AskedQuestion, query: str) -> ActResult:
        session = self._session
        session.knowledge_failures += 1
        if session.knowledge_failures < KNOWLEDGE_TRIES:
            return fail(session, "run.knowledge_failed", error=told(error, session.lang))
        await self._rows.tell(question.ledger_id, question.words, ReplyState.PLANNED, query=query)
        return put_off(session, error, query)


def _messages_of(question: AskedQuestion, cluster: Cluster) -> list[str]:
    """Return the messages of a question that consists of several; [] for one of a single message."""
    texts = cluster.messages
    spans = ((start, end) for start in range(len(texts)) for end in range(start + 2, len(texts) + 1))
    return next((texts[start:end] for start, end in spans if "\n".join(texts[start:end]) == question.words), [])


def _all_ours(chat: ChatScreen | None) -> bool:
    return chat is not None and all(bubble.side is Side.ME for bubble in chat.bubbles)
