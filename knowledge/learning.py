"""Learns from people's answers: they become waiting entries, which are never sent before a person approves them.

If a person picked a record, it learns the customer's words as another wording; a person's own text becomes an entry
with these words as its question. All of the words are kept, because whether a record answers depends on all of them;
only politeness and the contact's own name at the beginning or end are left out.

Words with personal data are no use for others. They never become a wording, and in the question of an entry they are
masked. Only some names and addresses can be told from other words, so whoever approves checks for them. A person's
answer is kept as it is, although it may be meant for one customer: ``personal_data`` finds what to warn of before
approval.

An answer may also serve another customer who waits: ``alike`` tells whether two ask nearly the same.
"""

from __future__ import annotations

import re

from agent_core.errors import InputRejected
from agent_core.ports import AnswerEvent, Provenance
from agent_core.reply.sureness.facts import Kind, facts_of
from agent_core.reply.sureness.plain import is_han, spaced, stripped, without_politeness
from agent_core.texts.clean import clean_text
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import LONGEST_QUESTION, Entry, likeness, line, make_entry, tokens
from knowledge.personal import MASK, is_personal, masked

# Share of common tokens. In the sample shop no two wordings of different entries reach it.
ALIKE = 0.8
_OURS = "embedded:"
_MARKS = r"\s*[，。！？…,!?;；:：\n]+\s*(?!\d)"  # after a mere space a name may belong to the next words
_NAMES_ONESELF = r"(?:我是|我叫|这里是|这边是|this is|i am|i'm)?"


def wording_of(words: str, contact: str) -> str:
    """Return a customer's words on one line, as they wrote them, without politeness and without the contact's name.

    Clauses of nothing but politeness are left out, and the name if it is set apart at the beginning or end. The meaning
    stays: the stripped form is the same except for the name.
    """
    words = _without_name(clean_text(words), contact)
    return line(without_politeness(words)).rstrip("，,；;：:、~～")


class Learning:
    """The learner from people's decisions, for the embedded base."""

    def __init__(self, base: EmbeddedKnowledge) -> None:
        self._base = base

    async def from_answer(self, answer: AnswerEvent) -> str:
        """Return the id of the waiting entry learnt from an event of the answer log; "" if none was."""
        if not answer.query:
            return ""  # the question could not be read
        if answer.provenance == Provenance.COMPOSED:
            return ""  # these words are no wording of one entry
        entry = await self.from_reply(
            words=answer.question,
            answer=answer.sent,
            record_id=answer.record_id,
            record_source=answer.record_source,
            person=answer.person,
            contact=answer.contact,
        )
        return entry.id if entry is not None else ""

    async def from_reply(
        self, *, words: str, answer: str, record_id: str, record_source: str, person: str, contact: str
    ) -> Entry | None:
        """Return the waiting entry learnt from a reply that a person wrote or picked; None if nothing is new.

        A person's own text (``record_id`` "") answers the customer's ``words``: all of them, with personal data masked,
        never what the model made of them. A picked record of ours learns the words as another wording; one of another
        provider is stored with its text. Nothing is learnt from politeness alone, from a wording that already means an
        entry, live or waiting, or from a question that already has this answer.
        """
        wording = wording_of(words, contact)
        if not stripped(wording) or not clean_text(answer):
            return None
        origin = f"person:{person}"
        if record_id and record_source.startswith(_OURS):
            personal = is_personal(wording) or _names(wording, contact)
            return None if personal else await self._wording(record_id, wording, origin)
        return await self._question(_without(wording, contact), clean_text(answer), origin)

    async def _question(self, question: str, answer: str, origin: str) -> Entry | None:
        question = question[:LONGEST_QUESTION].strip()
        entry = _made(question, answer, origin)
        if entry is None:
            return None
        return await self._base.add_unless(entry, lambda known: any(clean_text(one.answer) == answer for one in known))

    async def _wording(self, record_id: str, wording: str, origin: str) -> Entry | None:
        record = await self._base.get(record_id)
        if record is None:
            return None
        entry = _made(wording, record.answer, origin, alias_of=record.id)
        return await self._base.add_unless(entry, bool) if entry else None


def _made(question: str, answer: str, origin: str, alias_of: str = "") -> Entry | None:
    """Make a waiting entry; None if the question is empty or too long, or the answer is too long."""
    if not stripped(question.replace(MASK, "")):
        return None
    try:
        return make_entry(question=question, answer=answer, live=False, origin=origin, alias_of=alias_of)
    except InputRejected:
        return None


def _names(text: str, contact: str) -> bool:
    name = line(contact)
    return len(name) > 1 and name in text


def _without(text: str, contact: str) -> str:
    """Return the text on one line, with personal data and the contact's own name masked."""
    text = masked(line(text))
    return text.replace(line(contact), MASK) if _names(text, contact) else text


def _without_name(text: str, contact: str) -> str:
    """Return ``text`` without the contact's name at the beginning or end, if punctuation sets it apart.

    A name without a letter stays, because it may be a number that the customer asks about.
    """
    name = line(contact)
    if len(name) < 2 or not any(char.isalpha() for char in name):
        return text
    text = re.sub(rf"\A{_NAMES_ONESELF}\s*{re.escape(name)}{_MARKS}", "", text, flags=re.IGNORECASE)
    return re.sub(rf"{_MARKS}{re.escape(name)}\W*\Z", "", text)


def alike(one: str, other: str) -> bool:
    """Tell whether the words of two customers mean the same, or differ in a few words that do not matter."""
    first, second = stripped(one), stripped(other)
    if not first or not second:
        return False
    if first == second:
        return True
    if _telling(one) != _telling(other):
        return False
    return likeness(tokens(spaced(one)), tokens(spaced(other))) >= ALIKE


def _telling(text: str) -> tuple[object, ...]:
    """Return everything of a question but its plain words: how it asks, denials and limits, numbers and signs.

    In Chinese, a word in other letters is a name, which is not plain.
    """
    facts = facts_of(text)
    plain = {Kind.CONTENT} if any(map(is_han, text)) else {Kind.CONTENT, Kind.NAME}
    return facts.asking, facts.modality, facts.tense, [word for word in facts.words if word.kind not in plain]
