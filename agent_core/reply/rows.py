"""The customer's newest messages as rows of the ledger: opened, found again after a crash, and completed one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from hashlib import sha256

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame
from agent_core.perception.compare import Match, contains, fold, same_message
from agent_core.perception.readings import BubbleState, ChatScreen, Side
from agent_core.ports import AnswerEvent, Ledger, LedgerRow, MessageKey, Provenance, Record, ReplyState
from agent_core.reply.asked import CustomerQuestion, asked_in, shared
from agent_core.reply.match import LEAST_MISREAD, is_bubble_of, same_cluster, same_text
from agent_core.reply.planning import lines_of, planned_from, sent_texts
from agent_core.session import AskedQuestion, Cluster, Planned, Session

Tell = Callable[[AnswerEvent, Frame | None], Awaitable[None]]

# No text of these is on its way. FAILED has a red mark; SKIPPED is left by an attempt that died before it saved.
NOT_SENT = (ReplyState.PLANNED, ReplyState.FAILED)
MAY_BE_SKIPPED = (ReplyState.PLANNED, ReplyState.FAILED, ReplyState.SKIPPED)
SHORT = 2  # letters
LEAST_SHARED = 0.3  # of a query's letter pairs, to decide which of several questions it is for


class Rows:
    """One run's rows; ``session.cluster`` lists them."""

    def __init__(self, session: Session, profile: AppProfile, ledger: Ledger, tell: Tell, contact: str = "") -> None:
        self._session = session
        self._profile = profile
        self._ledger = ledger
        self._tell = tell
        self._of = contact  # "" means the session's contact, which may be read from the screen only during the run

    def of(self, contact: str) -> Rows:
        """Return the rows of another contact, whose chat was left open on the phone."""
        return Rows(self._session, self._profile, self._ledger, self._tell, contact)

    def current(self, chat: ChatScreen) -> bool:
        """Tell whether the chat is as it was when its questions were read, with what was sent since."""
        cluster = self._session.cluster
        return cluster is not None and same_cluster(cluster.messages, cluster.read_by, chat, cluster.ours)

    async def take(self, chat: ChatScreen, version: str) -> Cluster:
        """Open a row for each question of the newest messages.

        Older questions without an answer stay, unless the customer took them back.
        """
        session, before = self._session, self._session.cluster
        messages = [bubble.text for bubble in chat.question]
        asked, rows = [], []
        for one in asked_in(chat, session.lang):
            row = await self._row_of(one, messages, version)
            elsewhere = not await self._mine(row)
            rows.append(row)
            asked.append(
                AskedQuestion(
                    ledger_id=row.id,
                    fingerprint=row.key.fingerprint,
                    words=one.words,
                    readable=one.readable,
                    whole=one.whole,
                    done=row.state is ReplyState.SKIPPED or elsewhere,
                    elsewhere=elsewhere,
                )
            )
        known = {question.ledger_id for question in asked}
        older = [question for question in before.left if question.ledger_id not in known] if before else []
        if before is not None and before.ours:
            older = [question.model_copy(update={"above": True}) for question in older]
        for question in older:
            if not question.above:
                await self._taken_back(question)
        older = [question for question in older if question.above]
        session.cluster = Cluster(messages=messages, read_by=chat.source.value, asked=[*older, *asked])
        if session.planned is None:
            session.planned = self._by_person(rows, session.cluster)
        return session.cluster

    async def _row_of(self, one: CustomerQuestion, messages: Sequence[str], version: str) -> LedgerRow:
        row = await self._open(one, one.fingerprint, messages, version)
        if row.state is ReplyState.SKIPPED and fold(row.question) != fold(one.words):
            # More was added after it was skipped, so it is a question of its own.
            row = await self._open(one, f"{one.fingerprint}-{_digest(one.words)}", messages, version)
        return row

    def as_shown(self, chat: ChatScreen, planned: Planned) -> list[CustomerQuestion]:
        """Return the present form of the question that ``planned`` was to answer.

        That is the same message with additions since, and the same words if they were repeated.
        """
        return [
            one
            for one in asked_in(chat, self._session.lang)
            if one.fingerprint == planned.fingerprint or fold(one.words) == fold(planned.question)
        ]

    async def settle(self, one: CustomerQuestion, messages: Sequence[str], *, person: str = "") -> None:
        """Close the row of a question that a person was shown and skipped, so that they are not asked again."""
        row = await self._row_of(one, messages, "")
        if row.state in NOT_SENT and await self._mine(row):
            await self._ledger.advance(row.id, ReplyState.SKIPPED, expected=NOT_SENT)
            await self.tell(row.id, one.words, ReplyState.SKIPPED, person=person)

    @staticmethod
    def _by_person(rows: Sequence[LedgerRow], cluster: Cluster) -> Planned | None:
        """Return what a person wrote for the first of these messages in a run that could not send it, or None."""
        for row in rows:
            written = row.provenance is Provenance.PERSON and bool(row.text) and not row.part
            open_ = any(question.ledger_id == row.id for question in cluster.left)
            if written and open_ and row.state is ReplyState.PLANNED and list(row.cluster) == cluster.messages:
                return planned_from(row, cluster)
        return None

    async def _mine(self, row: LedgerRow) -> bool:
        """Tell whether this run may ask and answer. False if another run has the row and waits."""
        if row.state not in (*NOT_SENT, ReplyState.UNKNOWN):
            return True
        return await self.claim(row)

    async def claim(self, row: LedgerRow) -> bool:
        """Claim the row in the ledger. If that fails, store in the session what the other run waits for."""
        if await self._ledger.claim(row.id, self._session.run_id):
            return True
        holder = await self._ledger.find(row.key) or row
        waits = await self._ledger.waits(holder.run_id)
        if waits is None:  # it ended just now
            return await self._ledger.claim(row.id, self._session.run_id)
        self._session.elsewhere = waits
        return False

    async def look_elsewhere(self) -> bool:
        """Check whether the other run's question has been answered since.

        Returns True if that run is over and this one took over what it did not answer.
        """
        session, taken = self._session, False
        if session.elsewhere is None:
            return False
        session.elsewhere = await self._ledger.waits(session.elsewhere.run_id)
        for question in session.cluster.asked if session.elsewhere is None and session.cluster else ():
            row = await self.find(question) if question.elsewhere else None
            if row is not None and row.state in (*NOT_SENT, ReplyState.UNKNOWN) and await self.claim(row):
                question.done = question.elsewhere = False
                taken = True
        return taken

    async def missed(self, chat: ChatScreen) -> None:
        """Open rows for messages above our answer, written just as we sent it: nothing else reads them again."""
        cluster = self._session.cluster
        chat = replace(
            chat, bubbles=chat.bubbles[: len(chat.bubbles) - len(chat.question)]
        )  # the newest are handled separately
        ours, theirs, _ = _tail(chat, cluster.ours) if cluster else ([], [], [])
        if cluster is None or not ours:
            return
        new = _written_since(cluster.messages, theirs, chat)
        end = len(chat.bubbles) - len(ours)
        before = replace(chat, bubbles=chat.bubbles[:end])
        messages = [*cluster.messages, *new]
        for one in asked_in(before, self._session.lang, start=end - len(new)):
            row = await self._open(one, one.fingerprint, messages, "")
            done = row.state not in NOT_SENT or not await self._mine(row)
            update = {"words": one.words, "readable": one.readable, "whole": one.whole, "done": done}
            cluster.asked.append(_asked(row).model_copy(update=update))
        cluster.messages = messages

    async def _open(self, one: CustomerQuestion, mark: str, messages: Sequence[str], version: str) -> LedgerRow:
        run_id = self._session.run_id
        row = await self._ledger.open(
            self.key(mark), run_id=run_id, question=one.words, cluster=messages, app_version=version
        )
        if row.state is not ReplyState.WITHDRAWN:
            return row
        return await self._ledger.advance(row.id, ReplyState.PLANNED, expected=[ReplyState.WITHDRAWN])  # asked again

    async def adopt(self, chat: ChatScreen) -> Cluster | None:
        """Take over open rows whose questions are above our newest text, if there are any.

        They were left by a run that died between two answers or before it looked above its answer, or because another
        run answered a later question. All texts of ours below them must be known to the ledger: a colleague's answer
        settles them.
        """
        session, recent = self._session, await self._recent()
        ours, theirs, above = _tail(chat, [text for row in recent for text in sent_texts(row)])
        if not ours:
            return None
        sent = {fold(row.question): row.id for row in reversed(recent) if row.state is ReplyState.SENT}
        left = []
        for row in reversed(recent):
            if row.state is not ReplyState.PLANNED or not row.cluster:
                continue
            # Equal words that were answered before may be what is seen. Then only the row's own messages, unchanged,
            # decide. If they were answered later, those are the ones that are seen.
            answered = sent.get(fold(row.question), 0)
            seen = not answered and _stands_in([*above, *theirs], row, chat)
            whole = answered < row.id and same_cluster(row.cluster, "", chat, ours)
            if (seen or whole) and await self._mine(row):
                left.append(row)
        new = _written_since([text for row in recent for text in row.cluster], theirs, chat)
        messages = theirs[: len(theirs) - len(new)]
        if not left and not (new and messages):  # what is new must stand below a known message
            return None
        messages = messages or list(left[-1].cluster)
        session.cluster = Cluster(messages=messages, ours=ours, asked=[_asked(row) for row in left])
        if new:  # written just as we sent
            await self.missed(chat)
            if not session.cluster.left:
                session.cluster = None
                return None
        begun = next((row for row in left if row.part and row.text), None)
        if begun is not None:
            session.planned = planned_from(begun, session.cluster)
        return session.cluster

    def question_for(self, query: str) -> AskedQuestion | None:
        """Return the open question that ``query`` is for: the best match of their words, else the first."""
        left = self._session.cluster.left_readable if self._session.cluster else []
        if not left:
            return None
        best = max(left, key=lambda question: shared(query, question.words))
        return best if shared(query, best.words) >= LEAST_SHARED else left[0]

    async def same_words(self, question: AskedQuestion, state: ReplyState) -> LedgerRow | None:
        """Return a row in ``state`` of the same message, or None.

        The message has another key if it is read slightly differently.
        """
        for other in await self._recent():
            alike = same_message(other.key.fingerprint, question.fingerprint) is not Match.DIFFERENT
            if other.state is state and alike:
                return other
        return None

    async def undecided(self, chat: ChatScreen) -> LedgerRow | None:
        """Return another run's row that nobody was asked about: only a person can tell whether its text has arrived."""
        theirs = [bubble.text for bubble in chat.bubbles if bubble.side is Side.THEM]
        later: set[str] = set()  # equal words that were answered since
        for row in await self._recent():
            if row.state is ReplyState.SENT:
                later.add(fold(row.question))
            if row.state is not ReplyState.UNKNOWN or fold(row.question) in later:
                continue
            if _stands_in(theirs, row, chat) and await self._mine(row):
                return row
        return None

    async def find(self, question: AskedQuestion) -> LedgerRow | None:
        """Return the row of ``question``, or None."""
        return await self._ledger.find(self.key(question.fingerprint))

    async def repeat(self, question: AskedQuestion) -> LedgerRow:
        """Open a row for a message that looks like an answered one, to store what a person says of it.

        It holds for this message below the ones that are above it now, and for today: another message with the same
        words is another question, and what the customer writes below changes nothing. Such a message is seen only if
        the chat shows no answer of ours, because it was emptied or on another phone.
        """
        session = self._session
        messages = _until(question, session.cluster.messages if session.cluster else [])
        mark = f"{question.fingerprint}-repeat-{session.date}-{_digest(' '.join(messages))}"
        return await self._ledger.open(self.key(mark), run_id=session.run_id, question="")

    async def skip(self, question: AskedQuestion, *, person: str = "") -> None:
        """Close the row without an answer."""
        question.done = True
        row = await self.find(question)
        if row is None or row.state not in MAY_BE_SKIPPED:
            return
        await self._ledger.advance(row.id, ReplyState.SKIPPED, expected=MAY_BE_SKIPPED)
        await self.tell(row.id, question.words, ReplyState.SKIPPED, person=person)

    async def withdraw(self) -> None:
        """Withdraw all open questions, because they were taken back or a colleague answered them."""
        for question in self._session.cluster.left if self._session.cluster else []:
            await self._taken_back(question)

    async def take_over(self) -> None:
        """Take over what earlier runs left open in this chat: this run has looked since, and sees nothing to answer."""
        for row in await self._recent():
            if row.state is ReplyState.PLANNED and row.run_id != self._session.run_id:
                await self._ledger.claim(row.id, self._session.run_id)

    async def _taken_back(self, question: AskedQuestion) -> None:
        """Withdraw a question, unless the same words are written again in the same place."""
        question.done = True
        row = await self.find(question)
        withdrawable = (*NOT_SENT, ReplyState.WITHDRAWN)  # WITHDRAWN: left by an attempt that died before it told
        if row is not None and row.state in withdrawable:
            await self._ledger.advance(row.id, ReplyState.WITHDRAWN, expected=withdrawable)
            await self.tell(row.id, question.words, ReplyState.SKIPPED)

    def done(self, ledger_id: int) -> None:
        """Mark the question of this row as answered."""
        for question in self._session.cluster.asked if self._session.cluster else []:
            question.done = question.done or question.ledger_id == ledger_id

    async def tell(
        self,
        ledger_id: int,
        words: str,
        state: ReplyState,
        *,
        planned: Planned | None = None,
        query: str = "",
        records: Sequence[Record] | None = None,
        frame: Frame | None = None,
        person: str = "",
    ) -> None:
        """Record the state of a question in the answer log.

        query, records: what the base was asked and had. ``planned`` has its own query, so only one of the two is given.
        """
        event = AnswerEvent(
            ledger_id,
            self._profile.key,
            self._contact,
            words,
            state,
            query=planned.query if planned else query,
            records=records,
            sent=planned.text if planned else "",
            provenance=planned.provenance if planned else "",
            record_id=planned.record_id if planned else "",
            record_source=planned.record_source if planned else "",
            score=planned.score if planned else None,
            person=planned.person if planned else person,
        )
        await self._tell(event, frame)

    async def tell_row(self, row: LedgerRow, state: ReplyState) -> None:
        """Record the outcome of a row of an earlier attempt in the answer log."""
        planned = planned_from(row, Cluster(messages=list(row.cluster)))
        await self.of(row.key.contact).tell(row.id, row.question, state, planned=planned)

    def key(self, mark: str) -> MessageKey:
        """Return the key of a message. A message that a person declared to be a new question has a separate key."""
        session = self._session
        if session.answer_again and same_message(session.answer_again, mark) is not Match.DIFFERENT:
            mark = f"{mark}-again-{session.run_id}"
        return MessageKey(session.serial, self._profile.key, self._contact, mark)

    @property
    def _contact(self) -> str:
        return self._of or self._session.gate.contact

    async def _recent(self) -> Sequence[LedgerRow]:
        return await self._ledger.recent(self._session.serial, self._profile.key, self._contact)


def _until(question: AskedQuestion, messages: Sequence[str]) -> Sequence[str]:
    """Return ``messages`` up to the first that holds words of ``question``; all of them if none does."""
    lines = question.words.split("\n")
    first = next((n for n, text in enumerate(messages) if any(contains(text, line) for line in lines)), len(messages))
    return messages[: first + 1]


def _digest(words: str) -> str:
    return sha256(fold(words).encode()).hexdigest()[:8]


def _tail(chat: ChatScreen, sent: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return our newest texts, the messages directly above them, and those further up, each with the oldest first.

    All our texts must be among ``sent``; messages above any other text are left out.
    """
    ours: list[str] = []
    theirs: list[str] = []
    above: list[str] = []
    passed = False  # a text of ours is in between
    for bubble in reversed(chat.bubbles):
        if bubble.side is Side.THEM:
            (above if passed else theirs).insert(0, bubble.text)
            continue
        if bubble.state is BubbleState.FAILED:
            break
        text = next((text for text in sent if is_bubble_of(bubble, text, chat)), None)
        if text is None:
            break
        passed = bool(theirs)
        if not passed:
            ours.insert(0, text)
    return ours, theirs, above


def _written_since(known: Sequence[str], theirs: Sequence[str], chat: ChatScreen) -> Sequence[str]:
    """Return those of ``theirs`` that came after ``known``, of which the upper ones may be out of sight."""

    def same(seen: str, wanted: str) -> bool:
        return seen == wanted or same_text(seen, wanted, chat.source)  # pictures have no words

    if len(theirs) > len(known) and all(same(*pair) for pair in zip(theirs, known, strict=False)):
        return theirs[len(known) :]
    # A text that may be a known one, misread or cut off, is not new.
    old = [
        n
        for n, text in enumerate(theirs, start=1)
        if any(text == one or max(shared(one, text), shared(text, one)) >= LEAST_MISREAD for one in known)
    ]
    if not old and len(theirs) <= len(known) and all(len(fold(text)) <= SHORT for text in theirs):
        return []  # of so few letters, a misreading may leave none
    return theirs[max(old, default=0) :]


def _stands_in(seen: Sequence[str], row: LedgerRow, chat: ChatScreen) -> bool:
    """Tell whether the messages that the row answers, or parts of them, are still among those seen."""
    own = [texts for texts in lines_of(row) if texts]
    return bool(own) and all(any(same_text(text, one, chat.source) for one in seen for text in texts) for texts in own)


def _asked(row: LedgerRow) -> AskedQuestion:
    lines = lines_of(row)
    return AskedQuestion(
        ledger_id=row.id,
        fingerprint=row.key.fingerprint,
        words=row.question,
        readable=any(lines),
        whole=all(lines),
    )
